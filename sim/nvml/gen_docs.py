"""gen_docs.py: writes the lists of modelled and other NVML calls into docs/simulation.md, from modelled.def and
nvml-symbols.txt."""

import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
page = ROOT / "docs/simulation.md"


def put(begin, text):
    """Replaces what stands between the line `begin` and the next end mark."""
    end = "<!-- end -->\n"
    head, rest = page.read_text().split(begin)
    page.write_text(head + begin + text + end + rest.split(end, 1)[1])


calls = re.findall(r'^CALL\((\w+), "([^"]*)"\)', (ROOT / "sim/nvml/modelled.def").read_text(), re.M)
put("<!-- modelled NVML calls: sim/nvml/gen_docs.py -->\n",
    "| call | answers |\n|---|---|\n" + "".join(f"| `{name}` | {what} |\n" for name, what in calls))
others = sorted(set((ROOT / "sim/nvml/nvml-symbols.txt").read_text().split()) - {name for name, _ in calls})
put("<!-- other NVML calls: sim/nvml/gen_docs.py -->\n", textwrap.fill(" ".join(others), 118) + "\n")
