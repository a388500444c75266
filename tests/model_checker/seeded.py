#!/usr/bin/python3
"""seeded.py --build DIR [--seconds N] [FAULT...]: does the model checker find bugs? One at a time, a bug is put into a copy
of one source file, which is compiled and linked with the rest of the build into a model-checker of its own; that must
find it within the time, and must find nothing without it. Exit status 1: a bug was not found."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import typing

REPO = pathlib.Path(__file__).resolve().parents[2]


class Fault(typing.NamedTuple):
    what: str
    file: str
    text: str  # stands there once
    becomes: str


PLACEMENT = "src/model/placement/"
FAULTS = [
    Fault("sidecars take turns, as init containers do", PLACEMENT + "pod_use.c", "kind == ASK_INIT", "kind != ASK_APP"),
    Fault("a Binding that failed is not rolled back", PLACEMENT + "cluster.c", "if (h != NULL && is_promise(h))\n\t\tcluster_release",
          "if (h != NULL && h->state == HOLD_RESERVED)\n\t\tcluster_release"),
    Fault("a reservation expires while its Binding is on the way", PLACEMENT + "cluster.c",
          "\tlink_remove(&h->of_reserved);\n\tif (state", "\tif (state"),
    Fault("what a pod held before stays with it", PLACEMENT + "cluster.c", "\tif (old != NULL)\n\t\tdrop(c, old);\n", ""),
    Fault("holders are forgotten when a node comes back", PLACEMENT + "node_book.c",
          "int err = apply(b, HM_CONTAINER(at, struct holding, of_node), e);", "int err = 0;"),
    Fault("cards keep their numbers when the node's cards change", PLACEMENT + "node_book.c",
          "\tb->state = take_state;\n\tfind_cards(b);\n", "\tb->state = take_state;\n"),
    Fault("what cannot be read counts as nothing", PLACEMENT + "node_book.c", "if (use.slots == 0)", "if (use.slots >= 0)"),
    Fault("a pod's containers do not see one another", PLACEMENT + "fit.c",
          "return card_use_sum(f->n->used[card], f->own[card].use);", "return f->n->used[card];"),
    Fault("a card of which others have a part is sold whole", PLACEMENT + "fit.c",
          "if (c->cores == 100 && share->cores == 100 && used.slots > 0)", "if (false)"),
    Fault("cordons are forgotten when the node changes", PLACEMENT + "node_state.c", "words_have(text, n->cards[i].uuid)",
          "n->cards[i].cordoned && words_have(text, n->cards[i].uuid)"),
    Fault("a pod that would fill a card is refused", PLACEMENT + "fit.c",
          "if (c->memory_mib - used.memory_mib < share->memory_mib)", "if (c->memory_mib - used.memory_mib <= share->memory_mib)"),
    Fault("the quota read last is the only one", PLACEMENT + "quota.c", "HM_MIN(s->least.memory, it->limits.memory)",
          "it->limits.memory"),
    Fault("the namespace goes on paying for init containers that are done", PLACEMENT + "cluster.c",
          "node_book_end_init(h->node, h);\n\tcharge(h);", "node_book_end_init(h->node, h);"),
    Fault("slices are free when the first of a pod's containers leaves them", PLACEMENT + "node_state.c",
          "if (--n->slice_holders[card][i] == 0)", "n->slice_holders[card][i]--;"),
    Fault("pods that are being deleted hold nothing after a restart", "src/sched/view/pod_hold.c", "|| pod_has_ended(pod))",
          '|| pod_has_ended(pod) || pod_member(pod_member(pod, "metadata"), "deletionTimestamp") != NULL)'),
    Fault("init containers that are done hold again after a restart", "src/sched/view/pod_hold.c", "return plain > 0;",
          "return false;"),
]


def commands(build):
    """({source: what compiles it, but for names}, what links the checker, for a shell)."""
    done = subprocess.run(["ninja", "-C", build, "-t", "commands", "tests/model-checker"], check=True, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line]
    compile_of = {}
    for line in lines:
        source = re.search(r" -c (\S+)$", line)
        if source:
            compile_of[source[1]] = re.sub(r"( -M\w+)( -MT \S+)?( -MF \S+)? -o \S+ -c \S+$", "", line)
    return compile_of, lines[-1]


def seed(fault, source):
    text = (REPO / fault.file).read_text()
    if text.count(fault.text) != 1:
        sys.exit(f"seeded.py: {fault.file} has {fault.text!r} {text.count(fault.text)} times; mend the table of faults")
    source.write_text(text.replace(fault.text, fault.becomes))


def find(fault, build, compile_of, link, folder, seconds):
    """Seconds until the checker says that something is wrong; None: it does not."""
    source, program = folder / "fault.c", folder / "checker"
    seed(fault, source)
    compiler = next(command for name, command in compile_of.items() if name.endswith("/" + fault.file))
    subprocess.run(shlex.split(compiler) + ["-w", "-o", folder / "fault.o", "-c", source], cwd=build, check=True)
    subprocess.run(link.replace("-o tests/model-checker", f"{folder}/fault.o -o {program}"), shell=True, cwd=build, check=True)
    before = time.monotonic()
    done = subprocess.run([program, f"--seconds={seconds}"], capture_output=True, text=True, check=False, timeout=seconds + 60)
    if done.returncode == 0:
        return None, ""
    wrong = re.search(r"WRONG: (.*)|(check failed.*)|(SUMMARY.*)", done.stdout + done.stderr)
    return time.monotonic() - before, wrong[0] if wrong else f"ended with {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(os.environ.get("HAMI_BUILD", REPO / "build")))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("faults", nargs="*")
    args = parser.parse_args()
    chosen = [f for f in FAULTS if not args.faults or any(word in f.what for word in args.faults)]
    missed, build = 0, args.build.resolve()
    compile_of, link = commands(build)
    with tempfile.TemporaryDirectory(prefix="hm-seeded-", dir="/tmp") as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        def one(number):
            own = pathlib.Path(folder) / str(number)
            own.mkdir()
            return find(chosen[number], build, compile_of, link, own, args.seconds)

        for fault, (took, wrong) in zip(chosen, pool.map(one, range(len(chosen)))):
            missed += took is None
            print(f"{'NOT FOUND' if took is None else f'{took:5.2f} s'}  {fault.what}: {wrong}", flush=True)
    print(f"seeded.py: {len(chosen) - missed} of {len(chosen)} bugs found within {args.seconds} s each")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
