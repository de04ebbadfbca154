// SPDX-License-Identifier: MIT OR Apache-2.0
// Adds controls that sort and filter tables. Without this script, the page shows the same tables without the controls.
(() => {
  'use strict';
  const make = (name, parts) => Object.assign(document.createElement(name), parts);
  // Parses a number in the page's format: narrow spaces between groups of digits, a true minus sign, and possibly a
  // mark after the number. Returns NaN for a dot or a dash, which mean that there is no value.
  const value = (text) => parseFloat(text.replace(/[\s\u202f]/g, '').replace('\u2212', '-'));
  const text = (row, column) => (row.cells[column] ? row.cells[column].textContent.trim() : '');
  const order = (column, sign) => (a, b) => {
    const [x, y] = [text(a, column), text(b, column)];
    const [m, n] = [value(x), value(y)];
    const [none, empty] = [/^[-\u00b7?]?$/.test(x), /^[-\u00b7?]?$/.test(y)];
    // Rows without a value come last, in either direction.
    if (none || empty) return none - empty;
    if (Number.isNaN(m) !== Number.isNaN(n)) return Number.isNaN(m) - Number.isNaN(n);
    return sign * (Number.isNaN(m) ? x.localeCompare(y, 'en', { numeric: true }) : m - n);
  };
  const sorted = (body, rows, heads) => heads.forEach((head, column) => {
    if (!head.textContent.trim()) return;
    const button = make('button', { type: 'button', title: 'Sort' });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const next = { none: 'ascending', ascending: 'descending', descending: 'none' }[head.ariaSort || 'none'];
      heads.forEach((other) => other.removeAttribute('aria-sort'));
      if (next !== 'none') head.setAttribute('aria-sort', next);
      const sign = next === 'descending' ? -1 : 1;
      body.append(...(next === 'none' ? rows : [...rows].sort(order(column, sign))));
    });
  });
  const filtered = (table, rows) => {
    const field = make('input', { type: 'search', placeholder: 'words, any order' });
    const count = make('span', { role: 'status' });
    const line = make('p', { className: 'filter' });
    const label = make('label', { textContent: 'Only rows with ' });
    label.append(field);
    line.append(label, ' ', count);
    line.dataset.added = '';
    field.addEventListener('input', () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      rows.forEach((row) => {
        const cells = [...row.cells].map((cell) => cell.textContent.toLowerCase()).join(' ');
        row.hidden = !words.every((word) => cells.includes(word));
      });
      const left = rows.filter((row) => !row.hidden).length;
      count.textContent = words.length ? `${left} of ${rows.length}` : '';
    });
    (table.closest('.scroll') || table).before(line);
  };
  for (const table of document.querySelectorAll('table.data')) {
    const [body, head] = [table.tBodies[0], table.tHead];
    if (!body || !head || body.rows.length < 2) continue;
    const rows = [...body.rows];
    sorted(body, rows, [...head.rows[head.rows.length - 1].cells]);
    if (rows.length > 5 && !table.closest('.answer')) filtered(table, rows);
  }
})();
