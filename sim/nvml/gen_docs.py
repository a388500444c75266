"""gen_docs.py: writes the table of modelled NVML calls into docs/simulation.md, from modelled.def."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- modelled NVML calls: sim/nvml/gen_docs.py -->\n", "<!-- end -->\n"

calls = re.findall(r'^CALL\((\w+), "([^"]*)"\)', (ROOT / "sim/nvml/modelled.def").read_text(), re.M)
table = "| call | answers |\n|---|---|\n" + "".join(f"| `{name}` | {what} |\n" for name, what in calls)
page = ROOT / "docs/simulation.md"
head, rest = page.read_text().split(BEGIN)
tail = rest.split(END, 1)[1]
page.write_text(head + BEGIN + table + END + tail)
