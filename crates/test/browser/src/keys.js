// SPDX-License-Identifier: MIT OR Apache-2.0
// Returns the names of all operable elements, and defines `rousePlace`, which returns the focused element: its number
// in this list, -1 if it is not in the list, no number if the focus has left the page.
() => {
  const operated = 'a[href],button,input,select,textarea,summary,[tabindex],[role=button],[role=link],[onclick]';
  const shown = (element) => element.checkVisibility({ visibilityProperty: true });
  const list = [...document.querySelectorAll(operated)].filter((element) => shown(element) && !element.disabled);
  const name = (element) => {
    const words = element.getAttribute('aria-label') || element.textContent || element.placeholder || '';
    return `<${element.localName}> "${words.trim().replace(/\s+/g, ' ').slice(0, 40)}"`;
  };
  const colours = (style) => [style.outlineStyle, style.outlineWidth, style.outlineColor, style.boxShadow].join();
  const without = list.map((element) => colours(getComputedStyle(element)));
  window.rousePlace = () => {
    const at = document.activeElement;
    if (!at || at === document.body || at === document.documentElement) return { number: null };
    const number = list.indexOf(at);
    const style = getComputedStyle(at);
    const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1
      && !/, 0\)$|transparent/.test(style.outlineColor);
    const box = at.getBoundingClientRect();
    const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
    return { number, seen: inside && (outlined || style.boxShadow !== 'none') && colours(style) !== without[number] };
  };
  document.activeElement.blur();
  scrollTo(0, 0);
  return list.map(name);
}
