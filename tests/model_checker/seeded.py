#!/usr/bin/python3
"""seeded.py --build DIR [--seconds N] [FAULT...]: does the model checker find bugs, and the test of Bindings its own? One at
a time, a bug is put into a copy of one source file, which is compiled and linked with the rest of the build into a program
of its own; that must say what is wrong within the time. The same copies without a bug must say nothing. Exit status 1: a
bug was not found, or one that is not there."""
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
    program: str = "model-checker"


BIND = "src/sched/bind/bind_job.c"
PLACEMENT = "src/model/placement/"
FAULTS = [
    Fault("sidecars take turns, as init containers do", PLACEMENT + "pod_use.c", "kind == ASK_INIT", "kind != ASK_APP"),
    Fault("a Binding that failed is not rolled back", PLACEMENT + "cluster.c", "if (h != NULL && is_promise(h))\n\t\ttake_back",
          "if (h != NULL && h->state == HOLD_RESERVED)\n\t\ttake_back"),
    Fault("a reservation expires while its Binding is on the way", PLACEMENT + "cluster.c",
          "\tlink_remove(&h->of_reserved);\n\tif (state", "\tif (state"),
    Fault("what a pod held before stays with it", PLACEMENT + "cluster.c", "\tif (old != NULL)\n\t\tdrop(c, old);\n", ""),
    Fault("holders are forgotten when a node comes back", PLACEMENT + "node_book.c",
          "int err = apply(b, HM_CONTAINER(at, struct holding, of_node), e);", "int err = 0;"),
    Fault("CPU of a node is forgotten when its cards change", PLACEMENT + "node_book.c",
          "node_book_set_host(b, (struct host_amount) { take_state->cpu_milli, take_state->host_mib });",
          "b->host_all = (struct host_amount) { take_state->cpu_milli, take_state->host_mib };"),
    Fault("a promise that has expired keeps its CPU", PLACEMENT + "cluster.c",
          "\tclose_book(c, host_uses_give(c->hosts, h->uid, true));\n", ""),
    Fault("cards keep their numbers when the node's cards change", PLACEMENT + "node_book.c",
          "\tb->state = take_state;\n\tfind_cards(b);\n", "\tb->state = take_state;\n"),
    Fault("what cannot be read counts as nothing", PLACEMENT + "node_book.c", "if (use.slots == 0)", "if (use.slots >= 0)"),
    Fault("a pod's containers do not see one another", PLACEMENT + "fit.c",
          "return card_use_sum(f->n->used[card], f->own[card].use);", "return f->n->used[card];"),
    Fault("a card of which others have a part is sold whole", PLACEMENT + "fit.c",
          "if (c->cores == 100 && share->cores == 100 && used.slots > 0)", "if (false)"),
    Fault("cordons are forgotten when the node changes", PLACEMENT + "node_state.c", "\t\t\tset_cordon(n, (size_t)(card - n->cards), true);",
          "\t\t\t;"),
    Fault("a pod that would fill a card is refused", PLACEMENT + "fit.c",
          "if (c->memory_mib - used.memory_mib < share->memory_mib)", "if (c->memory_mib - used.memory_mib <= share->memory_mib)"),
    Fault("the quota read last is the only one", PLACEMENT + "quota.c", "HM_MIN(s->least.memory, it->limits.memory)",
          "it->limits.memory"),
    Fault("slices are free when the first of a pod's containers leaves them", PLACEMENT + "node_state.c",
          "if (--n->slice_holders[card][i] == 0)", "n->slice_holders[card][i]--;"),
    Fault("pods that are being deleted hold nothing after a restart", "src/sched/view/pod_hold.c", "|| pod_has_ended(pod) ||",
          "|| pod_has_ended(pod) || pod_is_terminating(pod) ||"),
    Fault("what is promised to a pod stays when somebody else has bound it", PLACEMENT + "cluster.c",
          "if (h->state == HOLD_RESERVED)\n\t\ttake_back(c, h);", ""),
    Fault("what ended unwatched is held for ever", PLACEMENT + "cluster.c", "\t\tcluster_release(c, h->uid);\n\t\tn++;", "\t\tn++;"),
    Fault("a Binding that was answered within a list is forgotten at its end", PLACEMENT + "cluster.c",
          " || h->bound_in == c->lists", ""),
    Fault("a pod that runs with nothing written on it holds nothing", "src/sched/view/pod_hold.c", "(!told && !pod_runs(pod))",
          "!told"),
    Fault("who was just bound may be evicted by everybody", PLACEMENT + "cluster.c", "   .priority = ask->priority,", ""),
    Fault("who could stay must go", PLACEMENT + "preempt.c", "if (fit > 0)\n\t\t\tcontinue;", ""),
    Fault("pods of the same priority must go", PLACEMENT + "preempt.c", "h->priority < p->ask->priority",
          "h->priority <= p->ask->priority"),
    Fault("who was asked about holds nothing any more", PLACEMENT + "preempt.c", "\tput_down_all(p);\n", "\t(void)put_down_all;\n"),
    Fault("nobody goes for another", PLACEMENT + "preempt.c", "fit = fits(p, n, e);\n\tif (fit > 0)\n\t\tfit = spare", "fit = 0;\n\tif (fit > 0)\n\t\tfit = spare"),
    Fault("a Binding that was refused keeps its cards", BIND, "\tjob_roll_back(j);\n\tjob_answer(j, why);", "\tjob_answer(j, why);",
          "test_sched_bind"),
    Fault("a node is remembered whatever is taken of it", PLACEMENT + "node_state.c",
          "\tprint = mix(print, (uint64_t)used->slots);\n", "", "test_place_ranks"),
    Fault("a node is remembered whatever CPU is left", PLACEMENT + "fgd.c",
          "return host_key(&now, 0) - splitmix_scramble(host_key(&then, 0));", "return now.count + then.count;", "test_place_ranks"),
    Fault("a node is remembered whatever quota is left", PLACEMENT + "place.c",
          "print = splitmix_scramble(print ^ (uint64_t)room.memory_mib);", "", "test_place_ranks"),
    Fault("a pod that is bound is only promised its cards", BIND, "\t\tcluster_bound(c->cluster, j->uid);",
          "\t\t;", "test_sched_bind"),
]
WRONG = {
    "model-checker": r"WRONG: (.*)",
    "test_sched_bind": r"\[  FAILED  \] (\w+)",
    "test_place_ranks": r"\[  FAILED  \] (\w+)",
}


def commands(build, program):
    """({source: what compiles it, but for names}, what links the program, for a shell)."""
    done = subprocess.run(["ninja", "-C", build, "-t", "commands", f"tests/{program}"], check=True, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line]
    compile_of = {}
    for line in lines:
        source = re.search(r" -c (\S+)$", line)
        if source:
            compile_of[source[1]] = re.sub(r"( -M\w+)( -MT \S+)?( -MF \S+)? -o \S+ -c \S+$", "", line)
    return compile_of, lines[-1]


def check_table():
    counts = [(fault, (REPO / fault.file).read_text().count(fault.text)) for fault in FAULTS]
    bad = [f"seeded.py: {fault.file} has {fault.text!r} {n} times; mend the table of faults" for fault, n in counts if n != 1]
    if bad:
        sys.exit("\n".join(bad))


def seed(fault, source, seeded):
    text = (REPO / fault.file).read_text()
    source.write_text(text.replace(fault.text, fault.becomes) if seeded else text)


def run(fault, build, compile_of, link, folder, seconds, seeded=True):
    """(seconds, what it said to be wrong); "": nothing."""
    source, program = folder / "fault.c", folder / "program"
    seed(fault, source, seeded)
    compiler = next(command for name, command in compile_of.items() if name.endswith("/" + fault.file))
    subprocess.run(shlex.split(compiler) + ["-w", "-o", folder / "fault.o", "-c", source], cwd=build, check=True)
    subprocess.run(link.replace(f"-o tests/{fault.program}", f"{folder}/fault.o -o {program}"), shell=True, cwd=build, check=True)
    before = time.monotonic()
    flags = [f"--seconds={seconds}"] if fault.program == "model-checker" else []
    done = subprocess.run([program, *flags], capture_output=True, text=True, check=False, timeout=seconds + 60)
    took, said = time.monotonic() - before, done.stdout + done.stderr
    wrong = re.search(WRONG[fault.program] + "|(check failed.*)|(SUMMARY.*)", said)
    if (done.returncode == 0) != (wrong is None):  # it could not do its work: that is not found
        sys.exit(f"seeded.py: {fault.what}: ended with {done.returncode}:\n{said[-2000:]}")
    return took, wrong[0] if wrong else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(os.environ.get("HAMI_BUILD", REPO / "build")))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--table", action="store_true", help="only whether each fault's text is there once")
    parser.add_argument("faults", nargs="*")
    args = parser.parse_args()
    chosen = [f for f in FAULTS if not args.faults or any(word in f.what for word in args.faults)]
    check_table()
    if args.table:
        return
    missed, build = 0, args.build.resolve()
    made = {program: commands(build, program) for program in {f.program for f in chosen}}
    controls = {f.file: f for f in chosen}.values()
    with tempfile.TemporaryDirectory(prefix="hm-seeded-", dir="/tmp") as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        def one(fault, seconds, seeded):
            own = pathlib.Path(tempfile.mkdtemp(dir=folder))
            return run(fault, build, *made[fault.program], own, seconds, seeded)

        for fault, (_, wrong) in zip(controls, pool.map(lambda f: one(f, 3, False), controls)):
            if wrong:
                sys.exit(f"seeded.py: {fault.file} as it is: {wrong}")
        for fault, (took, wrong) in zip(chosen, pool.map(lambda f: one(f, args.seconds, True), chosen)):
            missed += not wrong
            print(f"{f'{took:5.2f} s' if wrong else 'NOT FOUND'}  {fault.what}: {wrong}", flush=True)
    print(f"seeded.py: {len(chosen) - missed} of {len(chosen)} bugs found within {args.seconds} s each; without them nothing "
          f"({len(controls)} files)")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
