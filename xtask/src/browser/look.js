// What a person would see, as numbers. Evaluated in the page; the page itself has no script.
(() => {
  const channel = (value) => {
    const c = value / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (color) => (color.match(/[\d.]+/g) || []).map(Number);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  let worst = { ratio: 99, what: "" };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("svg, .hidden")) continue;
    const front = luminance(parse(getComputedStyle(element).color));
    const back = luminance(behind(element));
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (ratio < worst.ratio) worst = { ratio, what: `${element.tagName} ${element.className} in ${element.parentElement.className}` };
  }
  const details = [...document.querySelectorAll("details")];
  const outermost = details.filter((d) => !d.parentElement.closest("details"));
  for (const each of outermost) if (!each.open) each.querySelector("summary").click();
  const opened = outermost.every((d) => d.open && [...d.children].slice(1).every((child) => child.offsetHeight > 0));
  const gap = document.querySelector("details.gap");
  if (gap) gap.querySelector("summary").click();
  return {
    cards: document.querySelectorAll("article.card").length,
    charts: document.querySelectorAll(".chart .plot").length,
    line: document.querySelector(".chart .line")?.getBoundingClientRect().width ?? 0,
    foreign: document.querySelectorAll("script, img, iframe, object, embed, form, base, [onerror], [onload]").length,
    details: details.length,
    opened,
    gap: gap ? gap.querySelector(".old").innerText : null,
    wider: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    contrast: worst.ratio,
    faintest: worst.what,
    text: document.body.textContent,
    title: document.title,
    ran: typeof window.ran,
  };
})()
