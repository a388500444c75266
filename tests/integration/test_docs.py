"""docs/: what they quote of the programs is what the programs say."""
import re

import pytest

from kubelet_peer import REPO

PAGE = (REPO / "docs/troubleshooting.md").read_text()


def literals():
    """All texts of the product's source, adjacent literals joined as the compiler does."""
    text = "\n".join(p.read_text() for p in sorted((REPO / "src").rglob("*.c")))
    text = re.sub(r'"\s*\n\s*"', "", text)
    return "\n".join(m.replace('\\"', '"') for m in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text))


def quoted():
    """The first column of the tables that are headed `message`."""
    for table in re.findall(r"^\| message .*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.M):
        for row in table.splitlines():
            yield re.match(r"\| `(.*?)` \|", row).group(1)


def test_there_are_many():
    assert len(list(quoted())) > 30


@pytest.mark.parametrize("message", list(quoted()))
def test_the_agent_says_so(message):
    said = literals()
    for part in message.split("<...>"):
        assert part.strip(";: ") == "" or part in said or part.strip() in said, part


def names():
    """What src/contract names: annotations, resources, variables, paths."""
    for page in ("hami", "host", "container", "names"):
        text = (REPO / f"src/contract/{page}.h").read_text()
        for value in re.findall(r'^#define \w+ "([^"]+)"', text, re.M):
            if "/" in value or re.fullmatch("[A-Z][A-Z_]+", value):
                yield value


def test_every_name_is_on_a_page_of_the_contracts():
    pages = "".join(p.read_text() for p in (REPO / "docs/contracts").glob("*.md"))
    found = list(names())
    assert len(found) > 60
    assert not [name for name in found if name not in pages]


def test_every_example_and_page_that_is_named_is_there():
    for page in ("troubleshooting.md", "node-agent.md"):
        for name in re.findall(r"deploy/examples/([\w.-]+\.yaml)", (REPO / "docs" / page).read_text()):
            assert (REPO / "deploy/examples" / name).exists(), name


def test_the_conformance_list_names_tests_that_are_there():
    """docs/scheduler.md: ten rows, each held by `FILE` `TEST`, `TEST`, ..."""
    section = re.search(r"^## As HAMi's, and where not\n(.*?)^## ", (REPO / "docs/scheduler.md").read_text(), re.M | re.S)[1]
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|", section, re.M)
    assert [int(number) for number, _ in rows] == list(range(1, 11))
    for _, held_by in rows:
        assert re.match(r"`\w+\.(py|c)` `\w+`", held_by)
        text = None
        for name, is_file in re.findall(r"`(\w+(\.py|\.c)?)`", held_by):
            if is_file:  # two folders may have one of that name
                text = "".join(path.read_text() for path in (REPO / "tests").rglob(name))
            else:
                assert re.search(rf"^(def|static void) {name}\(", text, re.M), name
