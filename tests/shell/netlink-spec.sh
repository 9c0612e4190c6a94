#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# docs/netlink/tensor.yaml agrees with the headers: the same names and types in the same order. With the
# kernel's schema in $NETLINK_SCHEMA (Documentation/netlink/genetlink.yaml of a kernel source from 6.4 on) it
# is also validated as a specification.
exec /usr/bin/python3 - "$@" <<'PYTHON'
import os
import re
import sys
import yaml

UAPI = "include/uapi/linux/"
spec = yaml.safe_load(open("docs/netlink/tensor.yaml"))
netlink = open(UAPI + "tensor_netlink.h").read()
tensor = open(UAPI + "tensor.h").read()
failures = []


def names(prefix, items):
    return [prefix + str(i).upper().replace("-", "_") for i in items]


def enum_of(text, name):
    body = re.search(r"enum %s \{(.*?)\}" % name, text, re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return [i.split("=")[0].strip() for i in body.split(",") if re.match(r"\s*[A-Z]", i)]


def check(what, got, want):
    if got != want:
        failures.append(f"{what}: the specification has {got}, the header {want}")


def c_name(text):
    return text.replace("-", "_")


def check_types(attribute_set):
    """The type is said in the comment of the header, as "@NAME: u64: what it is"."""
    prefix = c_name(attribute_set["name-prefix"]).upper()
    for a in attribute_set["attributes"]:
        name = prefix + c_name(a["name"]).upper()
        said = re.search(r"@%s: (.*)" % name, netlink)
        if not said or a["type"] == "pad":
            continue
        said = said.group(1)
        if said.startswith("as @"):
            said = re.search(r"%s: (.*)" % said.split()[1], netlink).group(1)
        want = a["type"] if a["type"] != "binary" else "array of " + a["sub-type"]
        if not re.match(re.escape(want) + r"\b", said):
            failures.append(f"{name} is {want} in the specification, and in the header: {said}")


def check_operations():
    sets = {s["name"]: {a["name"] for a in s["attributes"]} for s in spec["attribute-sets"]}
    groups = {g["name"] for g in spec["mcast-groups"]["list"]}
    for op in spec["operations"]["list"]:
        lists = [p[d]["attributes"] for p in (op.get("do"), op.get("dump")) if p
                 for d in ("request", "reply") if d in p]
        lists += [op["event"]["attributes"]] if "event" in op else []
        for attributes in lists:
            unknown = set(attributes) - sets[op["attribute-set"]]
            if unknown:
                failures.append(f"{op['name']}: no attributes {unknown}")
        if "event" in op and op.get("mcgrp") not in groups:
            failures.append(f"{op['name']}: no such group")


results = []


def test(name, function):
    failures.clear()
    function()
    results.append((name, list(failures)))


def commands():
    ops = spec["operations"]
    want = [c for c in enum_of(netlink, c_name(ops["enum-name"])) if not c.endswith(("_UNSPEC", "_MAX"))]
    check("commands", names(c_name(ops["name-prefix"]).upper(), [o["name"] for o in ops["list"]]), want)
    check("first command", ops["list"][0].get("value", 0), 1)


def attributes():
    for s in spec["attribute-sets"]:
        want = [c for c in enum_of(netlink, c_name(s["enum-name"])) if not c.endswith(("_UNSPEC", "_MAX"))]
        got = names(c_name(s["name-prefix"]).upper(), [a["name"] for a in s["attributes"]])
        check(s["name"], got, want)
    sets = len(re.findall(r"^enum tensor_a_", netlink, re.M))
    check("attribute sets", len(spec["attribute-sets"]), sets)


def definitions():
    for d in spec["definitions"]:
        entries = [e if isinstance(e, str) else e["name"] for e in d["entries"]]
        prefix = "TENSOR_%s_" % c_name(d["name"]).upper()
        text = tensor if d.get("header", "").endswith("/tensor.h") else netlink
        if d["type"] == "flags":
            want = re.findall(r"^#define (%s\w+)\s+\(1U << (\d+)\)" % prefix, text, re.M)
            check(d["name"], [(n, str(i)) for i, n in enumerate(names(prefix, entries))], want)
        else:
            want = [c for c in enum_of(text, "tensor_" + c_name(d["name"])) if not c.endswith("_COUNT")]
            check(d["name"], names(prefix, entries), want)


def family():
    check("name", spec["name"], re.search(r'TENSOR_GENL_NAME\s+"(.*)"', netlink).group(1))
    check("group", [g["name"] for g in spec["mcast-groups"]["list"]],
          [re.search(r'TENSOR_GENL_EVENTS\s+"(.*)"', netlink).group(1)])


def types():
    for s in spec["attribute-sets"]:
        check_types(s)


def schema():
    import jsonschema
    with open(os.environ["NETLINK_SCHEMA"]) as f:
        rules = yaml.safe_load(f)
    for e in jsonschema.Draft7Validator(rules).iter_errors(spec):
        failures.append(f"{'/'.join(map(str, e.path))}: {e.message}")


test("family_has_the_name_of_the_header", family)
test("commands_are_those_of_the_header", commands)
test("attributes_are_those_of_the_header", attributes)
test("types_are_those_of_the_header", types)
test("flags_and_enums_are_those_of_the_headers", definitions)
test("operations_name_attributes_and_groups_that_exist", check_operations)
if os.environ.get("NETLINK_SCHEMA"):
    test("specification_follows_the_kernels_schema", schema)
print(f"1..{len(results)}")
for n, (name, failed) in enumerate(results, 1):
    print(f"{'not ok' if failed else 'ok'} {n} - {name}")
    for line in failed:
        print("# " + line)
sys.exit(any(failed for _, failed in results))
PYTHON
