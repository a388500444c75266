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


def test_every_example_and_page_that_is_named_is_there():
    for page in ("troubleshooting.md", "node-agent.md"):
        for name in re.findall(r"deploy/examples/([\w.-]+\.yaml)", (REPO / "docs" / page).read_text()):
            assert (REPO / "deploy/examples" / name).exists(), name
