// The console's only script. Pages work without it, but for what is done and what changes: it gives forms their token, keeps pages up to date,
// shows times as ages and tells what a node's cells mean.
'use strict';

const token = () => document.querySelector('meta[name=token]').content;

// Forms bring the session's token. It stands in the page's head alone, since the rest of a page is the same for everybody with the same rights.
document.addEventListener('submit', (event) => {
  const form = event.target;
  if (form.method !== 'post' || form.elements.token) return;
  const field = document.createElement('input');
  field.type = 'hidden';
  field.name = 'token';
  field.value = token();
  form.prepend(field); // before a file, which the server reads last
});

// morph makes an element what another one is and leaves alone what is the same, so that the focus, what is open, what is marked and how far
// something was scrolled stay.
function morph(old, now) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName || old.id !== now.id) {
    old.replaceWith(now);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== now.data) old.data = now.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!now.hasAttribute(name) && name !== 'open') old.removeAttribute(name);
  }
  for (const { name, value } of [...now.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.nodeName === 'TIME') {
    showAge(old);
    return;
  }
  const before = [...old.childNodes];
  const after = [...now.childNodes];
  after.forEach((child, i) => (i < before.length ? morph(before[i], child) : old.append(child)));
  before.slice(after.length).forEach((child) => child.remove());
}

function parse(html) {
  const template = document.createElement('template');
  template.innerHTML = html;
  showAges(template.content);
  return template.content.firstElementChild;
}

// apply does what the server says has changed.
function apply(ops) {
  for (const { do: what, id, html } of ops) {
    const element = document.getElementById(id);
    if (!element) continue;
    if (what === 'remove') element.remove();
    if (what === 'set') morph(element, parse(html));
    if (what === 'append') {
      const follows = element.dataset.follow !== undefined && element.scrollHeight - element.scrollTop - element.clientHeight < 40;
      element.append(parse(html));
      if (follows) element.scrollTop = element.scrollHeight;
    }
  }
  document.dispatchEvent(new Event('changed'));
}

// follow keeps the page up to date while it can be seen. A hidden one would hold one of the six connections that a browser has to the control plane.
function follow(version) {
  const link = document.getElementById('link');
  const say = (text) => { if (link.textContent !== text) link.textContent = text; };
  let source = null;
  const close = () => {
    source?.close();
    source = null;
  };
  const open = () => {
    if (source || document.hidden) return;
    const address = new URL(location);
    address.searchParams.set('live', version);
    source = new EventSource(address);
    source.addEventListener('change', (event) => {
      version = event.lastEventId;
      apply(JSON.parse(event.data));
    });
    source.addEventListener('reload', () => location.reload());
    source.addEventListener('full', () => {
      close();
      say('too many pages are open');
    });
    source.addEventListener('open', () => say('live'));
    source.addEventListener('error', () => {
      say('connection lost, trying again');
      if (source?.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 3000); // the session is over, or the page can't be shown
    });
  };
  open();
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()));
  addEventListener('pagehide', close);
  addEventListener('pageshow', (event) => { if (event.persisted) location.reload(); });
}

// Ages: a time's text is how long ago it was, and its title is when.
const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];

function showAge(element) {
  const at = new Date(element.dateTime);
  const seconds = Math.round((Date.now() - at) / 1000);
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ['s', 1];
  const age = Math.trunc(Math.abs(seconds) / size) + ' ' + unit;
  const text = seconds < 0 ? 'in ' + age : age + ' ago';
  if (element.textContent !== text) element.textContent = text;
  if (!element.title) element.title = at.toLocaleString();
}

function showAges(root) { root.querySelectorAll('time').forEach(showAge); }

// tip tells of all GPUs of the node that the pointer or the keyboard is on, once it has been there for a moment.
const tip = document.createElement('div');
tip.id = 'tip';
tip.hidden = true;
let tipFor = null;

function tell(node, lines) {
  if (tipFor !== node) return;
  tip.replaceChildren(...[node.getAttribute('aria-label'), ...lines].map((text) => {
    const line = document.createElement('div');
    line.textContent = text;
    return line;
  }));
}

function showTip(node) {
  if (node === tipFor) return;
  tipFor = node;
  tip.hidden = !node;
  if (!node) return;
  tell(node, []);
  setTimeout(() => {
    if (tipFor === node) fetch(node.href + '/gpus').then((r) => (r.ok ? r.text() : '')).then((text) => tell(node, text.split('\n'))).catch(() => {});
  }, 80);
  const place = node.getBoundingClientRect();
  tip.classList.toggle('above', place.top > innerHeight / 2);
  tip.classList.toggle('left', place.left > innerWidth / 2);
}

const nodeAt = (event) => event.target.closest?.('.node');
for (const kind of ['pointerover', 'focusin']) document.addEventListener(kind, (event) => showTip(nodeAt(event)));
document.addEventListener('keydown', (event) => { if (event.key === 'Escape') showTip(null); });

// The arrows go from one node to the next.
document.addEventListener('keydown', (event) => {
  const node = nodeAt(event);
  const step = { ArrowLeft: 'previousElementSibling', ArrowRight: 'nextElementSibling' }[event.key];
  if (node && step && node[step]) {
    node[step].focus();
    event.preventDefault();
  }
});

// A terminal's keys are sent in the order in which they are typed. Shift and Tab leave it.
const special = {
  Enter: '\r', Backspace: '\x7f', Tab: '\t', Escape: '\x1b', ArrowUp: '\x1b[A', ArrowDown: '\x1b[B', ArrowRight: '\x1b[C', ArrowLeft: '\x1b[D',
  Home: '\x1b[H', End: '\x1b[F', Delete: '\x1b[3~', PageUp: '\x1b[5~', PageDown: '\x1b[6~',
};
let sent = Promise.resolve();
let typed = '';

function type(address, text) {
  typed += text;
  sent = sent.then(() => {
    const body = typed;
    typed = '';
    return body && fetch(address, { method: 'POST', headers: { 'X-Token': token() }, body });
  }).catch(() => {});
}

const terminalAt = (event) => event.target.closest?.('[data-keys]');
document.addEventListener('keydown', (event) => {
  const terminal = terminalAt(event);
  if (!terminal || event.metaKey || event.isComposing || (event.key === 'Tab' && event.shiftKey)) return;
  let text = special[event.key] ?? (event.key.length === 1 ? event.key : '');
  if (event.ctrlKey && event.key.length === 1) {
    if (event.key === 'c' && !getSelection().isCollapsed) return; // that copies
    if (event.key === 'v') return; // that pastes
    text = String.fromCharCode(event.key.toUpperCase().charCodeAt(0) & 31);
  } else if (event.altKey && text) {
    text = '\x1b' + text;
  }
  if (!text) return;
  event.preventDefault();
  type(terminal.dataset.keys, text);
});
document.addEventListener('paste', (event) => {
  const terminal = terminalAt(event);
  if (terminal) type(terminal.dataset.keys, event.clipboardData.getData('text').replaceAll('\n', '\r'));
});

// A terminal is as large as there is room for it, and the server is told when that changes.
let size = '';

function fit(terminal) {
  const ruler = document.createElement('span');
  ruler.textContent = 'x'.repeat(20);
  terminal.firstElementChild?.append(ruler);
  const { width, height } = ruler.getBoundingClientRect();
  ruler.remove();
  if (!width) return;
  const style = getComputedStyle(terminal);
  const padding = parseFloat(style.paddingLeft) * 2;
  const columns = Math.floor((terminal.parentElement.clientWidth - padding) / (width / 20));
  const rows = Math.floor((innerHeight - terminal.getBoundingClientRect().top - scrollY - padding - 48) / parseFloat(style.lineHeight));
  if (size === columns + ' ' + rows) return;
  size = columns + ' ' + rows;
  fetch(terminal.dataset.size, { method: 'POST', headers: { 'X-Token': token() }, body: size }).catch(() => { size = ''; });
}

const terminal = document.querySelector('[data-size]');
if (terminal) {
  terminal.focus();
  fit(terminal);
  let waiting;
  addEventListener('resize', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => fit(document.querySelector('[data-size]')), 200);
  });
}

// What is followed begins at its end, where the news are.
for (const followed of document.querySelectorAll('[data-follow]')) followed.scrollTop = followed.scrollHeight;

document.body.append(tip);
showAges(document);
setInterval(() => showAges(document), 1000);
if (document.body.dataset.live) follow(document.body.dataset.live);
