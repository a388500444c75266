"""To wait for something that comes by itself."""
import time


def wait_until(what, seconds, check, every=0.005):
    """What `check` says when it is true; AssertionError where that takes longer."""
    end = time.monotonic() + seconds
    while True:
        got = check()
        if got:
            return got
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(every)
