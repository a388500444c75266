"""/metrics of a large cluster, 5,000 nodes with 8 cards and 40,000 pods with a share each: how long a scrape takes, and what
it costs those who ask /filter meanwhile."""
import collections
import random
import subprocess
import time

from asking import Scheduler, filter_request, gpu, kubeconfig_of, latencies_ms, pod
from figures import Figure, interleaved, median, percentile
from fixed_lists import CARDS, FixedLists, node_name

NODES, NAMED, CALLS = 5000, 500, 1000
HOLDERS = NODES * CARDS
RECORDED = {"HAMi v2.10.0, 1,000 nodes and 10,000 pods": 1.3}


class Scraper:
    def __init__(self, it, folder):
        self.page = folder / "page"
        # Niced: a third process on two cores takes from the others what is not asked about here.
        self.command = ["nice", "curl", "-sSf", "-o", str(self.page), f"http://127.0.0.1:{it.said('metrics_port')}/metrics"]

    def seconds(self):
        begun = time.perf_counter()
        subprocess.run(self.command, check=True, timeout=60)
        return time.perf_counter() - begun

    def check(self, promised):
        """Each card once, each share, and what was promised meanwhile."""
        found = collections.Counter(line.split("{")[0] for line in self.page.read_text(encoding="utf-8").splitlines())
        told = found["hami_gpu_memory_limit_bytes"], found["hami_vgpu_memory_allocated_bytes"]
        if told != (NODES * CARDS, HOLDERS + promised):
            raise RuntimeError(f"a page with {told} cards and shares")


def calls_ms(sock, texts, scraper=None):
    """The calls' p99; with a scraper: beside one scrape after the other."""
    took, scrape = [], None
    while len(took) < CALLS or (scraper and scrape.poll() is None):
        if scraper and (scrape is None or (scrape.poll() == 0 and len(took) < CALLS)):
            scrape = subprocess.Popen(scraper.command)
        took += latencies_ms(sock, texts, len(texts))
    if scrape and scrape.wait() != 0:
        raise RuntimeError(f"curl: {scrape.returncode}")
    return percentile(took, 0.99)


def measure(context):
    random_ = random.Random(3)
    with FixedLists.of_size(NODES, HOLDERS, HOLDERS) as lists, Scheduler(context.build, context.folder) as it:
        it.start(kubeconfig_of(lists, context.folder)).wait_ready()
        every = [node_name(i) for i in range(NODES)]
        texts = [filter_request(pod(f"p{i}", **gpu(2000)), random_.sample(every, NAMED)) for i in range(20)]
        scraper = Scraper(it, context.folder)
        with it.connect() as sock:
            found = interleaved(context.rounds, scrape=scraper.seconds, alone=lambda: calls_ms(sock, texts),
                                beside=lambda: calls_ms(sock, texts, scraper))
        scraper.check(len(texts))
        size = scraper.page.stat().st_size / (1 << 20)
    why = f"{HOLDERS} cards, {HOLDERS} shares, {size:.0f} MiB"
    yield Figure("sched.metrics_page_s", "s", median(found["scrape"]), goal="<= 5", why=why, recorded=RECORDED)
    yield Figure("sched.filter_beside_scrape_p99", "ms", median(found["beside"]), "the same calls without a scrape",
                 median(found["alone"]), "<= peer + 5")
