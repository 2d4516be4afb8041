// The explorer in the browser: one module for the notebook (anywidget) and the page (Streamlit).
// It shows what handed_over.py hands over, and tells Python what was chosen. Nothing is loaded.

export default function start(streamlit) {
  return streamlit ? inStreamlit(streamlit) : { render: inNotebook };
}

function inNotebook({ model, el }) {
  const view = explorer(el, {
    choose: (layer, head) => tell({ layer, head }),
    read: (text, pair) => tell({ text, pair }),
    from: (start) => tell({ start }),
  });
  function tell(values) {
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
  }
  const show = () => view.show(model.get("content"), chosen());
  const chosen = () => [model.get("layer"), model.get("head")];
  const write = () => view.write(model.get("text"), model.get("pair"));
  const move = () => view.choose(...chosen());
  const watched = [["change:content", show], ["change:layer change:head", move],
    ["change:text change:pair", write]];
  for (const [names, does] of watched) model.on(names, does);
  // Or JupyterLab takes keys for its own: arrows to move to another cell, B to add one. What goes
  // with Ctrl is left to it, such as saving. It listens to the document, so this has to be earlier.
  const own = ({ target, ctrlKey, metaKey }) => {
    if (el.contains(target)) {
      target.toggleAttribute("data-lm-suppress-shortcuts", !(ctrlKey || metaKey));
    }
  };
  window.addEventListener("keydown", own, true);
  write();
  show();
  return () => {
    window.removeEventListener("keydown", own, true);
    for (const [names, does] of watched) model.off(names, does);
  };
}

const inPlace = new WeakMap(); // Streamlit calls again for the same place whenever the page is run

function inStreamlit({ parentElement, data, setStateValue }) {
  if (!inPlace.has(parentElement)) {
    const el = make("div");
    parentElement.append(el);
    inPlace.set(parentElement, explorer(el, {
      choose: (layer, head) => setStateValue("chosen", [layer, head]),
    }));
  }
  inPlace.get(parentElement).show(data, data.chosen);
}

// ---------------------------------------------------------------- the component

function explorer(el, tell) {
  let content, weights, queries, keys, logsums; // what Python handed over
  let layer, head, query, key; // what is shown, and of which pair the products
  const n = () => content.tokens.length;
  const weight = (i, j) => weights[((layer * content.heads + head) * n() + i) * n() + j];

  const error = make("p", { class: "error", role: "alert", hidden: "" });
  const notes = make("div", { role: "status" });
  const results = make("div", { hidden: "" });
  const asked = tell.read && asking(tell.read, () => { notes.textContent = "Reading …"; });
  const slider = tell.from && range("Drawn from token", tell.from);
  const grid = make("div", { class: "scrolled" });
  const title = make("h3");
  const told = make("p", { class: "told", role: "status" });
  const lines = make("div", { class: "lines" });
  const table = make("div", { class: "scrolled numbers", role: "region", tabindex: "0" });
  const facts = make("div", { class: "parts" });
  const pair = make("div");
  const kinds = make("div");
  const reading = make("ul");
  results.append(
    ...(slider ? [slider.label] : []),
    make("div", { class: "parts" },
      make("section", {}, make("h3", {}, "All heads"), grid),
      facts),
    title, told,
    make("div", { class: "parts" }, lines, table),
    make("section", {}, make("h3", {}, "One weight, step by step"), pair),
    make("details", {}, make("summary", {}, "What each head of this layer does"), kinds),
    make("details", {}, make("summary", {}, "How to read this"), reading),
  );
  const root = make("div", { class: "mha-explorer" },
    ...(asked ? [asked.whole] : []), error, notes, results);
  el.append(root);
  let buttons, tokens, cells, svg, selects, products;

  function show(given, place) {
    if (given.turn === content?.turn) return; // the same text again
    content = given;
    error.hidden = !content.error;
    error.textContent = content.error ?? "";
    notes.replaceChildren(...(content.notes ?? []).map((note) => make("p", {}, note)));
    results.hidden = Boolean(content.error);
    if (content.error) return;
    weights = numbers(content.weights);
    if (content.queries) {
      [queries, keys, logsums] = [content.queries, content.keys, content.logsums].map(numbers);
    }
    slider?.set(content.start, content.last_start);
    reading.replaceChildren(...content.reading.map((line) => make("li", {}, line)));
    layer = undefined;
    drawGrid();
    drawTokens();
    drawTable();
    drawChoice();
    choose(...place);
  }

  function choose(newLayer, newHead) { // null: the head to open on
    if (!content || content.error) return;
    const [first, second] = content.opening;
    const there = (chosen, size) => chosen !== null && chosen >= 0 && chosen < size;
    newLayer = there(newLayer, content.layers) ? newLayer : first;
    newHead = there(newHead, content.heads) ? newHead : second;
    if (newLayer === layer && newHead === head) return;
    [layer, head] = [newLayer, newHead];
    for (const [place, button] of buttons.entries()) {
      const here = place === layer * content.heads + head;
      button.setAttribute("aria-pressed", here);
      button.tabIndex = here ? 0 : -1;
    }
    const figures = content.figures[layer][head];
    title.replaceChildren(`Layer ${layer}, head ${head} `, make("b", {}, figures.kind));
    facts.replaceChildren(
      rows("Most attended", ["token", "mean weight"], figures.most, 4),
      rows("Where its attention goes", ["what", "share"], figures.shares, 4));
    kinds.replaceChildren(rows(`Layer ${layer}`, ["head", "what it does"],
      content.figures[layer].map((figure, place) => [`head ${place}`, figure.kind])));
    paintTable();
    choosePair(...strongest());
    light(null);
  }

  const pick = (newLayer, newHead) => {
    choose(newLayer, newHead);
    tell.choose(newLayer, newHead);
  };

  // All layers and heads, small. The arrow keys move, and what they reach is shown large.
  function drawGrid() {
    const { layers, heads } = content;
    buttons = [];
    const body = make("tbody");
    for (let l = 0; l < layers; l++) {
      const row = make("tr", {}, make("th", { scope: "row" }, `layer ${l}`));
      for (let h = 0; h < heads; h++) {
        const name = `layer ${l}, head ${h}, ${content.figures[l][h].kind}`;
        const button = make("button", { type: "button", "aria-label": name, title: name },
          small(l, h));
        button.addEventListener("click", () => pick(l, h));
        buttons.push(button);
        row.append(make("td", {}, button));
      }
      body.append(row);
    }
    const names = Array.from({ length: heads }, (_, h) =>
      make("th", { scope: "col" }, make("span", { class: "of-head" }, `${h}`)));
    grid.replaceChildren(make("table", { class: "heads", "aria-label": "All layers and heads" },
      make("thead", {}, make("tr", {}, make("th", {}, "head"), ...names)), body));
    grid.onkeydown = (event) => moved(event, buttons, {
      ArrowLeft: -1, ArrowRight: 1, ArrowUp: -heads, ArrowDown: heads,
    }, (place) => pick(Math.floor(place / heads), place % heads));
  }

  function small(l, h) {
    const side = n();
    const canvas = make("canvas", { width: side, height: side, "aria-hidden": "true" });
    const image = new ImageData(side, side);
    const first = (l * content.heads + h) * side * side;
    for (let cell = 0; cell < side * side; cell++) {
      image.data.set([63, 144, 218, Math.round(255 * weights[first + cell])], 4 * cell);
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  // Queries to the left, keys to the right. Pointing at one shows its lines and numbers only.
  function drawTokens() {
    const side = (name, heading) => {
      const items = content.tokens.map((token, place) => {
        const number = make("span", { class: "number" });
        const word = make("bdi", {}, token);
        const button = make("button", { type: "button" },
          ...(name === "queries" ? [number, word] : [word, number]));
        button.addEventListener("mouseenter", () => light(name, place));
        button.addEventListener("focus", () => light(name, place));
        button.addEventListener("blur", () => light(null));
        button.addEventListener("click", () => {
          if (name === "keys") choosePair(query, place);
          else choosePair(place, best(content.tokens.map((_, j) => weight(place, j))));
        });
        return { button, number };
      });
      const list = make("ol", { "aria-label": heading }, ...items.map(({ button }, place) =>
        make("li", place === content.second ? { class: "second" } : {}, button)));
      const box = make("div", { class: name }, make("div", { class: "side-title" }, heading), list);
      box.addEventListener("mouseleave", () => light(null));
      box.addEventListener("keydown", (event) => {
        const all = tokens[name].map((item) => item.button);
        const other = tokens[name === "queries" ? "keys" : "queries"];
        if (event.key === (name === "queries" ? "ArrowRight" : "ArrowLeft")) {
          event.preventDefault();
          reach(other.map((item) => item.button), all.indexOf(event.target.closest("button")));
        } else {
          moved(event, all, { ArrowUp: -1, ArrowDown: 1 }, (place) => reach(all, place));
        }
      });
      return { box, items };
    };
    const [left, right] = [side("queries", "query"), side("keys", "key")];
    tokens = { queries: left.items, keys: right.items };
    svg = drawing("svg", { height: 24 * n(), viewBox: `0 0 120 ${24 * n()}`, "aria-hidden": "true" });
    lines.replaceChildren(left.box, svg, right.box);
    reach(left.items.map((item) => item.button), 0, false);
    reach(right.items.map((item) => item.button), 0, false);
  }

  function light(side, place) { // side null: every line
    const of = (i, j) => side === null || place === (side === "queries" ? i : j);
    const paths = [];
    for (let i = 0; i < n(); i++) {
      for (let j = 0; j < n(); j++) {
        const size = weight(i, j);
        if (!of(i, j) || size < (side === null ? 0.02 : 0.001)) continue;
        const [from, to] = [24 * i + 12, 24 * j + 12];
        paths.push(drawing("path", {
          d: `M0,${from} C50,${from} 70,${to} 120,${to}`, "stroke-width": Math.max(0.3, 7 * size),
          "stroke-opacity": side === null ? 0.55 : 0.9, "data-pair": `${i} ${j}`,
        }));
      }
    }
    svg.replaceChildren(...paths);
    for (const name of ["queries", "keys"]) {
      for (const [other, { button, number }] of tokens[name].entries()) {
        button.classList.toggle("active", name === side && other === place);
        const shown = side !== null && name !== side;
        number.textContent = !shown ? "" :
          (side === "queries" ? weight(place, other) : weight(other, place)).toFixed(3);
      }
    }
    told.textContent = side === null
      ? "Point at a token, or go to it with Tab and the arrow keys. Click or Enter: step by step."
      : tell_of(side, place);
  }

  function tell_of(side, place) {
    const found = content.tokens.map((token, other) =>
      [token, side === "queries" ? weight(place, other) : weight(other, place)]);
    found.sort((one, two) => two[1] - one[1]);
    const list = found.filter(([, size], rank) => rank < 1 || (rank < 5 && size >= 0.0005))
      .map(([token, size]) => `${token} ${size.toFixed(3)}`).join(", ");
    return side === "queries"
      ? `The query “${content.tokens[place]}” attends to: ${list}`
      : `To the key “${content.tokens[place]}” attend: ${list}`;
  }

  // The heat map is a table of the numbers, so that it can also be read aloud.
  function drawTable() {
    cells = [];
    const body = make("tbody");
    for (const [i, token] of content.tokens.entries()) {
      const row = make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, token)));
      for (let j = 0; j < n(); j++) {
        const cell = make("td");
        cell.addEventListener("click", () => choosePair(i, j));
        cells.push(cell);
        row.append(cell);
      }
      body.append(row);
    }
    const names = content.tokens.map((token) => make("th", { scope: "col" }, make("bdi", {}, token)));
    table.setAttribute("aria-label", "The weights as a table");
    table.replaceChildren(make("table", { class: "weights" },
      make("caption", {}, "The weights: a row for each query, a column for each key"),
      make("thead", {}, make("tr", {}, make("td"), ...names)), body));
  }

  function paintTable() {
    for (const [place, cell] of cells.entries()) {
      const size = weight(Math.floor(place / n()), place % n());
      cell.textContent = size.toFixed(2).replace(/^0/, "");
      cell.style.setProperty("--share", `${100 * size}%`);
    }
  }

  // The product of one query and one key, feature by feature.
  function drawChoice() {
    const choice = (name, chosen) => {
      const select = make("select", { "aria-label": name }, ...content.tokens.map((token, place) =>
        make("option", { value: place }, `${content.start + place} ${token}`)));
      select.addEventListener("change", () => chosen(Number(select.value)));
      return [make("label", {}, `${name} `, select), select];
    };
    const [first, ofQuery] = choice("Query", (place) => choosePair(place, key));
    const [second, ofKey] = choice("Key", (place) => choosePair(query, place));
    selects = [ofQuery, ofKey];
    products = make("div");
    pair.replaceChildren(make("p", {}, first, " ", second), products);
  }

  function choosePair(i, j) {
    cells[query * n() + key]?.classList.remove("chosen");
    [query, key] = [i, j];
    cells[i * n() + j].classList.add("chosen");
    [selects[0].value, selects[1].value] = [i, j];
    for (const [name, place] of [["queries", i], ["keys", j]]) {
      for (const [other, { button }] of tokens[name].entries()) {
        button.setAttribute("aria-pressed", other === place);
      }
    }
    products.replaceChildren(...(content.queries ? steps() : [make("p", {},
      "This model does not say its queries and keys, so only the weight is known: " +
      `${weight(i, j).toFixed(4)}.`)]));
  }

  function vector(all, place) {
    const first = ((layer * content.heads + head) * n() + place) * content.width;
    return [...all.subarray(first, first + content.width)];
  }

  function steps() {
    const [d, q] = [content.width, vector(queries, query)];
    const score = (place) =>
      vector(keys, place).reduce((sum, number, f) => sum + number * q[f], 0) / Math.sqrt(d);
    const k = vector(keys, key);
    const product = q.map((number, f) => number * k[f]);
    const sum = product.reduce((one, two) => one + two, 0);
    const logsum = logsums[(layer * content.heads + head) * n() + query];
    const largest = best(product.map(Math.abs));
    const [one, other] = [content.tokens[query], content.tokens[key]];
    const drawn = n() < content.length ? ", also of those not drawn" : "";
    const all = content.tokens.map((token, j) => [`${content.start + j} ${token}`, score(j),
      Math.exp(score(j)), Math.exp(score(j) - logsum)]);
    return [
      make("p", {}, `How much “${one}” attends to “${other}”: q is the query of “${one}”, `,
        `k the key of “${other}”. Both have ${d} features.`),
      make("div", { class: "bars" }, ...bars("q", q), ...bars("k", k), ...bars("q × k", product)),
      make("ol", { class: "sums" },
        make("li", {}, `Multiply feature by feature and add up: q · k = ${sum.toFixed(3)}. `,
          `Feature ${largest} brings most: ${product[largest].toFixed(3)}.`),
        make("li", {}, `Divide by √${d} = ${Math.sqrt(d).toFixed(3)}: `,
          `the score is ${(sum / Math.sqrt(d)).toFixed(3)}.`),
        make("li", {}, `Softmax: e to this score is ${short(Math.exp(sum / Math.sqrt(d)))}. `,
          `Over all ${content.length} keys these add up to ${short(Math.exp(logsum))}${drawn}. `,
          "The quotient is the weight: ",
          make("b", {}, Math.exp(sum / Math.sqrt(d) - logsum).toFixed(4)), ".")),
      make("details", {}, make("summary", {}, `All ${d} products as a table`),
        rows("Feature by feature", ["feature", "q", "k", "q × k"],
          product.map((number, f) => [`${f}`, q[f], k[f], number]), 3)),
      make("details", {}, make("summary", {}, `All keys of “${one}” as a table`),
        rows("Score, power and weight", ["key", "score", "e^score", "weight"],
          all.map(([token, s, power, w]) => [token, s, short(power), w]), 4)),
    ];
  }

  function strongest() { // the pair to begin with: of words, and of two different ones if it can be
    const word = content.tokens.map((token) => !["[CLS]", "[SEP]"].includes(token));
    const place = best(cells.map((_, at) => {
      const [i, j] = [Math.floor(at / n()), at % n()];
      return weight(i, j) + (word[i] && word[j] && i !== j ? 2 : 0);
    }));
    return [Math.floor(place / n()), place % n()];
  }

  return { show, choose, write: (text, other) => asked?.write(text, other) };
}

// ---------------------------------------------------------------- parts

function asking(read, wait) {
  const [text, pair] = ["Text", "Second text, for a sentence pair (optional)"].map((name) => {
    const input = make("input", { type: "text", autocomplete: "off" });
    return { input, label: make("label", {}, name, input) };
  });
  const button = make("button", { type: "button" }, "Read");
  const whole = make("div", { class: "asked" }, text.label, pair.label, button);
  let last = [];
  const send = () => {
    const now = [text.input.value, pair.input.value];
    if (String(now) === String(last)) return;
    last = now;
    wait();
    read(...now);
  };
  button.addEventListener("click", send);
  // Not a form: in a cell of JupyterLab, Enter sends none. With Chinese, Enter also ends a word.
  whole.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing && event.target !== button) send();
  });
  const write = (...values) => {
    last = values;
    [text.input.value, pair.input.value] = values;
  };
  return { whole, write };
}

function range(name, changed) {
  const input = make("input", { type: "range", min: 0 });
  const number = make("output");
  const label = make("label", {}, `${name} `, input, " ", number);
  input.addEventListener("input", () => { number.textContent = input.value; });
  input.addEventListener("change", () => changed(Number(input.value)));
  const set = (value, last) => {
    label.hidden = last === 0;
    input.max = last;
    input.value = value;
    number.textContent = value;
  };
  return { label, set };
}

function bars(name, values) {
  const top = Math.max(...values.map(Math.abs)) || 1;
  const width = 100 / values.length;
  const picture = drawing("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img",
    "aria-label": `${name}: ${values.length} features between ${Math.min(...values).toFixed(2)} ` +
      `and ${Math.max(...values).toFixed(2)}` },
    drawing("line", { x1: 0, x2: 100, y1: 20, y2: 20 }),
    ...values.map((value, f) => drawing("rect", { x: f * width + width / 8, width: width * 0.75,
      y: value > 0 ? 20 - 20 * value / top : 20, height: 20 * Math.abs(value) / top,
      class: value > 0 ? "plus" : "minus" },
      drawing("title", {}, `feature ${f}: ${value.toFixed(3)}`))));
  return [make("span", {}, name), picture];
}

function rows(caption, names, all, digits) {
  const cell = (value) => typeof value === "number"
    ? make("td", { class: "number" }, value.toFixed(digits)) : make("td", {}, make("bdi", {}, value));
  return make("table", { class: "small" }, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...all.map((row) => make("tr", {}, ...row.map(cell)))));
}

function moved(event, all, ways, does) {
  const place = all.indexOf(event.target.closest("button")) + ways[event.key];
  if (event.key in ways) event.preventDefault();
  if (!(place in all)) return;
  all[place].focus();
  does(place);
}

function reach(all, place, focused = true) { // one of these is in the Tab order
  all.forEach((button, other) => { button.tabIndex = other === place ? 0 : -1; });
  if (focused) all[place].focus();
}

const best = (values) => values.reduce((at, value, i) => (value > values[at] ? i : at), 0);
const short = (value) => (value < 1e5 && value >= 0.01 ? value.toPrecision(4) : value.toExponential(2));

function numbers(text) {
  return new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}

function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function drawing(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
