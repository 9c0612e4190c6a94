// SPDX-License-Identifier: LGPL-2.1-only OR MIT
// Search by name: those that start with the text come first, then those that contain it.
const field = document.getElementById("search");
const found = document.getElementById("found");

function matches(text) {
	const starts = [], contains = [];

	for (const [name, page] of NAMES) {
		const at = name.toLowerCase().replace(/^tensor_/, "").indexOf(text);

		if (at === 0)
			starts.push([name, page]);
		else if (at > 0)
			contains.push([name, page]);
	}
	starts.sort((a, b) => a[0].length - b[0].length);
	return starts.concat(contains).slice(0, 14);
}

function show() {
	const text = field.value.trim().toLowerCase().replace(/^tensor_/, "");

	found.replaceChildren();
	for (const [name, page] of text ? matches(text) : []) {
		const item = document.createElement("li"), link = document.createElement("a");

		link.href = page;
		link.textContent = name;
		item.append(link);
		found.append(item);
	}
}

field.addEventListener("input", show);
field.addEventListener("keydown", (event) => {
	if (event.key === "Enter" && found.querySelector("a"))
		location.href = found.querySelector("a").href;
	if (event.key === "Escape") {
		field.value = "";
		show();
	}
});
found.addEventListener("click", () => {
	field.value = "";
	show();
});
document.addEventListener("keydown", (event) => {
	if (event.key === "/" && document.activeElement !== field) {
		event.preventDefault();
		field.focus();
	}
});
