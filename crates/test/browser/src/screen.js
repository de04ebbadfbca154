// SPDX-License-Identifier: MIT OR Apache-2.0
// Returns the errors of this document, each as [check, what].
(paper) => {
  // Text smaller than this many CSS pixels can't be read, on a screen or on paper (where 96 are an inch).
  const SMALLEST = paper ? 7.4 : 9;
  // WCAG 2.2, 1.4.3 (AA). Large text has the same limit.
  const CONTRAST = 4.5;
  const found = [];
  const find = (check, what) => {
    if (!found.some(([c, w]) => c === check && w === what)) found.push([check, what]);
  };
  const named = (element) => {
    const words = (element.textContent || '').trim().replace(/\s+/g, ' ').slice(0, 40);
    const classes = (element.getAttribute('class') || '').trim().replace(/\s+/g, '.');
    const id = element.id ? '#' + element.id : '';
    return `<${element.localName}${id}${classes && '.' + classes}> "${words}"`;
  };
  const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const all = (selector) => [...document.querySelectorAll(selector)];
  // Folded text is checked as well.
  all('details').forEach((details) => { details.open = true; });

  // Widths.
  const wide = document.documentElement.clientWidth;
  const scrolls = (element) => /auto|scroll/.test(getComputedStyle(element).overflowX);
  const boxed = (element) => {
    for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) {
      if (scrolls(at)) return true;
    }
    return false;
  };
  const most = document.documentElement.scrollWidth;
  if (most > wide) find('overflow', `the page is ${most} px wide, the window ${wide}`);
  for (const element of all('body *')) {
    if (!shown(element) || element.ownerSVGElement) continue;
    const { right, left, width } = element.getBoundingClientRect();
    if (width === 0) continue;
    const style = getComputedStyle(element);
    const clipped = style.overflowX === 'hidden' || style.overflowX === 'clip';
    if (clipped && element.scrollWidth > element.clientWidth + 1) find('cut', named(element));
    if ((right > wide + 0.5 || left < -0.5) && (paper || !boxed(element))) {
      find('overflow', `${named(element)} ends at ${right.toFixed(0)} px of ${wide}`);
    }
    // On paper nothing scrolls.
    if (paper && scrolls(element) && element.scrollWidth > element.clientWidth + 1) {
      find('overflow', `${named(element)} has ${element.scrollWidth} px in ${element.clientWidth}`);
    }
  }

  // Labels of charts are whole and do not overlap.
  for (const svg of all('svg')) {
    if (!shown(svg)) continue;
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].filter((text) => text.textContent.trim());
    const boxes = texts.map((text) => [text, text.getBoundingClientRect()]);
    for (const [text, box] of boxes) {
      const out = Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom);
      if (out > 1.5) find('cut', `${named(text)} goes ${out.toFixed(0)} px out of "${svg.getAttribute('aria-label')}"`);
    }
    for (let i = 0; i < boxes.length; i++) {
      for (let j = i + 1; j < boxes.length; j++) {
        const [[a, x], [b, y]] = [boxes[i], boxes[j]];
        const across = Math.min(x.right, y.right) - Math.max(x.left, y.left);
        const down = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
        // A line of text is higher than its letters.
        if (across > 1 && down > Math.min(x.height, y.height) * 0.35) {
          find('overlap', `${named(a)} and ${named(b)} in "${svg.getAttribute('aria-label')}"`);
        }
      }
    }
  }

  // Colours as they are drawn: any colour that CSS knows, as red, green, blue and opacity.
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const colour = (css) => {
    if (!known.has(css)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = css;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(css, [r, g, b, a / 255]);
    }
    return known.get(css);
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  // WCAG 2.2, relative luminance and contrast ratio.
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const dark = matchMedia('(prefers-color-scheme: dark)').matches && !paper;
  const sheet = dark ? [18, 18, 18] : [255, 255, 255];
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      if (at.ownerSVGElement) continue;
      const style = getComputedStyle(at);
      if (style.backgroundImage !== 'none') find('contrast', `${named(at)} has an image behind it`);
      layers.push(colour(style.backgroundColor));
    }
    return layers.reduceRight((below, layer) => over(layer, below), sheet);
  };
  const opacity = (element) => {
    let value = 1;
    for (let at = element; at; at = at.parentElement) value *= getComputedStyle(at).opacity;
    return value;
  };
  const inked = (css, parts) => {
    const [r, g, b, a] = colour(css);
    return [r, g, b, a * parts];
  };
  const judge = (element, ink, paperOf) => {
    const ratio = contrast(over(ink, paperOf), paperOf);
    if (ratio < CONTRAST) find('contrast', `${ratio.toFixed(2)} : 1 of ${named(element)}`);
  };
  // Returns the colour below a point of a drawing: its shapes there, drawn from the lowest up.
  const drawn = (text, x, y) => {
    let below = behind(text.ownerSVGElement);
    for (const shape of text.ownerSVGElement.querySelectorAll('rect,path,circle,polygon,ellipse')) {
      if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
      const style = getComputedStyle(shape);
      if (style.fill === 'none' || !shown(shape)) continue;
      const point = new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse());
      if (shape.isPointInFill(point)) below = over(inked(style.fill, style.fillOpacity * opacity(shape)), below);
    }
    return below;
  };
  const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !shown(element) || element.closest('script,style,title')) continue;
    const style = getComputedStyle(element);
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    const svg = element.ownerSVGElement;
    const scale = svg ? element.getScreenCTM().a : 1;
    const size = parseFloat(style.fontSize) * scale;
    if (size < SMALLEST) find('small', `${size.toFixed(1)} px: ${named(element)}`);
    if (!svg) {
      judge(element, inked(style.color, opacity(element)), behind(element));
      continue;
    }
    const ink = inked(style.fill, style.fillOpacity * opacity(element));
    const haloed = style.paintOrder.startsWith('stroke') && parseFloat(style.strokeWidth) >= 3;
    for (const part of [0.02, 0.5, 0.98]) {
      const [x, y] = [box.left + part * box.width, box.top + box.height / 2];
      const ground = drawn(element, x, y);
      judge(element, ink, haloed ? over(inked(style.stroke, style.strokeOpacity), ground) : ground);
    }
  }
  // Lines of charts. WCAG 2.2, 1.4.11: parts that are needed to understand a drawing have a contrast of at least 3 : 1.
  for (const line of all('svg path')) {
    const style = getComputedStyle(line);
    if (style.fill !== 'none' || !shown(line) || line.getTotalLength() === 0) continue;
    const chart = line.ownerSVGElement.getAttribute('aria-label') || 'a legend';
    const ground = behind(line.ownerSVGElement);
    const ratio = style.stroke === 'none' ? 1 : contrast(over(inked(style.stroke, style.strokeOpacity * opacity(line)), ground), ground);
    if (ratio < 3) find('lines', `${ratio.toFixed(2)} : 1 of <path.${line.getAttribute('class')}> in "${chart}"`);
  }
  for (const field of all('input[placeholder],textarea[placeholder]')) {
    const style = getComputedStyle(field, '::placeholder');
    if (shown(field)) judge(field, inked(style.color, style.opacity * opacity(field)), behind(field));
  }

  // Order and links.
  const headings = all('h1,h2,h3,h4,h5,h6').filter(shown);
  const ones = headings.filter((heading) => heading.localName === 'h1').length;
  if (ones !== 1) find('headings', `${ones} of level 1`);
  let level = 0;
  for (const heading of headings) {
    const own = Number(heading.localName[1]);
    if (own > level + 1) find('headings', `level ${own} below level ${level}: ${named(heading)}`);
    level = own;
  }
  const ids = all('[id]').map((element) => element.id);
  ids.forEach((id, place) => {
    if (ids.indexOf(id) !== place) find('ids', `#${id} is there twice`);
  });
  for (const link of all('a[href^="#"]')) {
    const id = decodeURIComponent(link.getAttribute('href').slice(1));
    if (!id || !document.getElementById(id)) find('links', `${named(link)} leads to #${id}, which is not there`);
  }
  for (const image of all('svg:not([aria-hidden="true"]),img')) {
    const name = image.getAttribute('aria-label') || image.getAttribute('alt');
    if (!name) find('names', `${named(image)} has no text for readers that can't see it`);
  }
  for (const control of all('button,input,select,textarea,a[href],summary')) {
    const name = control.getAttribute('aria-label') || control.textContent.trim() || (control.labels && control.labels.length);
    if (!name) find('names', `${named(control)} has none`);
  }
  if (!document.documentElement.lang) find('names', 'the language is not named');
  return found;
}
