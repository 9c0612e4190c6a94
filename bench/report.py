# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes tables of the measurements: rows that fall short come first, and no row is left out."""
import statistics


def time_text(ns):
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= scale:
            return f"{ns / scale:.3g} {unit}" if ns < 1000 * scale else f"{ns / scale:.0f} {unit}"
    return f"{ns:.3g} ns"


def spread(rounds):
    """Half the range of the rounds' medians, in percent of their median."""
    m = statistics.median(rounds)
    return 100 * (max(rounds) - min(rounds)) / 2 / m if m else 0


def line(row, peer, ours, theirs):
    """One line of the table as data. ours, theirs: rounds of samples in ns, or a text."""
    made = {"work": row.title, "threads": row.threads, "group": row.group, "row": row.row, "peer": peer.label,
            "mark": peer.mark, "ours_ns": None, "peer_ns": None, "ratio": None, "met": None}
    for key, samples in (("ours", ours), ("peer", theirs)):
        if isinstance(samples, str):
            made[key + "_missing"] = samples
        else:
            rounds = [statistics.median(r) for r in samples]
            made[key + "_ns"] = statistics.median(rounds)
            made[key + "_spread_percent"] = round(spread(rounds), 1)
            made[key + "_rounds_ns"] = samples
    if made["ours_ns"] and made["peer_ns"]:
        ratios = [statistics.median(t) / statistics.median(o) for o, t in zip(ours, theirs)]
        made.update(ratio=statistics.median(ratios), ratio_min=min(ratios),
                    ratio_max=max(ratios),
                    ratio_least=min(map(min, theirs)) / min(map(min, ours)))
        if peer.mark is not None:
            made["met"] = made["ratio"] >= peer.mark
    return made


def order(l):
    """Sort: rows that fall short, the worst first; rows that meet their mark; rows without mark or figure."""
    if l["met"] is False:
        return (0, l["ratio"] / l["mark"])
    if l["met"]:
        return (1, 0)
    return (2 if l["ratio"] else 3, 0)


def cells(l):
    def side(key):
        if l[key + "_ns"] is None:
            return l.get(key + "_missing", "-")
        return f"{time_text(l[key + '_ns'])} ±{l[key + '_spread_percent']:.0f} %"

    if l["ratio"] is None:
        ratio = "-"
    else:
        ratio = f"{l['ratio']:.3g} ({l['ratio_min']:.3g} - {l['ratio_max']:.3g})"
    mark = "-" if l["mark"] is None else f">= {l['mark']:g}"
    met = {True: "yes", False: "**short**", None: "-"}[l["met"]]
    least = "-" if l["ratio"] is None else f"{l['ratio_least']:.3g}"
    return [l["work"], str(l["threads"]), side("ours"), l["peer"], side("peer"), ratio, least, of_limit(l), mark, met]


HEAD = ["work", "threads", "ours", "peer", "peer's time", "ratio (range of rounds)", "of the fastest",
        "of the limit", "mark", "met"]


def of_limit(l):
    """The part of the machine's rate that our fastest sample reaches, and which rate."""
    if not l.get("limit_ns") or "ours_rounds_ns" not in l:
        return "-"
    return f"{100 * l['limit_ns'] / min(map(min, l['ours_rounds_ns'])):.0f} % {l['limit']}"


def rates(lines):
    """The rates of the machine, for each number of threads."""
    found = {l["threads"]: l["rates"] for l in lines if "rates" in l}
    return "".join(f"- limits, {t} thread{'s' * (t > 1)}: {text}\n" for t, text in sorted(found.items()))


def markdown(head, rows):
    widths = [max(len(r[i]) for r in [head] + rows) for i in range(len(head))]
    out = [head, ["-" * w for w in widths]] + rows
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(r, widths)) + " |" for r in out)


def table(lines):
    lines = sorted(lines, key=order)
    short = sum(l["met"] is False for l in lines)
    met = sum(l["met"] is True for l in lines)
    blank = sum(l["ratio"] is None for l in lines)
    said = f"{short} fall short of their mark, {met} meet it"
    if blank:
        said += f", {blank} could not be compared"
    return markdown(HEAD, [cells(l) for l in lines]) + f"\n\n{said}.\n"


def bytes_text(n):
    for unit, scale in (("MB", 1e6), ("KB", 1e3)):
        if n >= scale:
            return f"{n / scale:.2f} {unit}"
    return f"{n} B"


def peaks(lines):
    """The largest numbers of bytes, in tensors and in all; a row falls short if the peer needs less by both."""
    def row(l):
        counts = [(l["ours_peak"], l["peer_peak"]), (l["ours_heap"], l["peer_heap"])]
        if None in counts[0] + counts[1]:
            return [l["work"], str(l["threads"]), l["peer"], *["missing"] * 6, "-"]
        counted = [n for ours, theirs in counts
                   for n in (bytes_text(ours), bytes_text(theirs), f"{ours / theirs:.3f}")]
        return [l["work"], str(l["threads"]), l["peer"], *counted,
                "yes" if any(ours <= theirs for ours, theirs in counts) else "**short**"]

    rows = [row(l) for l in lines if "ours_peak" in l]
    return markdown(["work", "threads", "peer", "tensors, ours", "peer's", "ours / peer's", "all, ours", "peer's",
                     "ours / peer's", "not above"], rows) + "\n" if rows else ""


def by_operator(lines):
    """A summary of many rows: one line for each operator, dtype and number of threads."""
    found = {}
    for l in lines:
        if l["ratio"]:
            operator, operand = l["work"].split()[:2]
            key = (operator, operand.partition("[")[0], l["threads"], l["peer"])
            found.setdefault(key, []).append(l)
    rows = []
    for (operator, dtype, threads, peer), some in sorted(found.items()):
        ratios = [l["ratio"] for l in some]
        rows.append([operator, dtype, str(threads), peer, str(len(some)),
                     str(sum(not l["met"] for l in some)), f"{min(ratios):.3g}", f"{max(ratios):.3g}",
                     f"{statistics.geometric_mean(ratios):.3g}"])
    return markdown(["operator", "dtype", "threads", "peer", "rows", "short", "lowest", "highest",
                     "geometric mean"], rows) + "\n"


def means(lines, marks):
    """Per group, threads and peer: the numbers of rows and of those that fall short, the geometric mean, the lowest and
    the median ratio.
    marks: {group: the required mean, or None}"""
    found = {}
    for l in lines:
        if l["ratio"] and l["group"] in marks:
            found.setdefault((l["group"], l["threads"], l["peer"]), []).append(l)
    rows = []
    for (group, threads, peer), some in found.items():
        mean, mark = statistics.geometric_mean(l["ratio"] for l in some), marks[group]
        ratios = sorted(l["ratio"] for l in some)
        rows.append([group, str(threads), peer, str(len(some)), str(sum(not l["met"] for l in some)),
                     f"{ratios[0]:.2f}", f"{statistics.median(ratios):.2f}", f"{mean:.2f}", f">= {mark:g}" if mark else "-",
                     "-" if not mark else "yes" if mean >= mark else "**short**"])
    return markdown(["group", "threads", "peer", "rows", "short", "lowest", "median", "geometric mean", "mark", "met"],
                    rows) + "\n" if rows else ""


def build_table(lines):
    rows = [[l["work"], f"{l['seconds']:.1f} s", f"<= {l['mark']:g} s" if l["mark"] else "-",
             "-" if not l["mark"] else "yes" if l["met"] else "**short**"] for l in sorted(lines,
                                                                                           key=lambda l: l["met"])]
    return markdown(["work", "ours", "mark", "met"], rows) + "\n"
