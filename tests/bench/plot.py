"""Pictures of shares over time, by gnuplot."""
import subprocess

HEAD = """set terminal svg size 720,360 font 'sans,12' background 'white'
set output '{path}'
set title '{title}'
set xlabel 'seconds'
set ylabel 'percent of the card, last 2 s'
set xrange [0:*]
set yrange [0:100]
set ytics 10
set grid
set key outside right
"""


def write(path, title, curves):
    """curves: [(name, [(x, y), ...]), ...]"""
    text = HEAD.format(path=path, title=title)
    text += "plot " + ", ".join(f"'-' with lines lw 2 title '{name}'" for name, _ in curves) + "\n"
    text += "".join("".join(f"{x:.1f} {y:.2f}\n" for x, y in points) + "e\n" for _, points in curves)
    subprocess.run(["gnuplot"], input=text, text=True, check=True)
