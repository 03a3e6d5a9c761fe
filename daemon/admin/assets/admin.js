// What makes the pages more comfortable; all of them work without it. Copy buttons, dialogs that ask, and pages that keep themselves up
// to date. Everything that is put into a page comes from a page of the same server, finished and escaped there.

const REFRESH_EVERY_MS = 5_000;
const COPIED_FOR_MS = 2_000;

// ---- a page that a browser has kept for going back may show what is over: a session, a secret

addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});

// ---- copy buttons

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren(source);
    button.textContent = 'Not allowed: copy what is marked';
  }
  setTimeout(() => {
    button.textContent = before;
  }, COPIED_FOR_MS);
}

for (const button of document.querySelectorAll('[data-copy]')) {
  button.hidden = false;
  button.addEventListener('click', () => void copy(button));
}

// ---- a link to a page that asks shows it on top of this one

async function contentOf(href) {
  try {
    const response = await fetch(href, { redirect: 'error' });
    if (!response.ok) return null;
    const content = parsed(await response.text()).querySelector('[data-dialog-content]');
    return content && document.importNode(content, true);
  } catch {
    return null;
  }
}

const parsed = (html) => new DOMParser().parseFromString(html, 'text/html');

async function showDialog(link) {
  const content = await contentOf(link.href);
  if (!content) {
    location.assign(link.href); // Which says what is the matter.
    return;
  }
  const dialog = document.createElement('dialog');
  const heading = content.querySelector('h1');
  const cancel = content.querySelector('[data-dialog-cancel]');
  heading.id = 'dialog-title';
  dialog.setAttribute('aria-labelledby', heading.id);
  dialog.append(content);
  cancel.addEventListener('click', (event) => {
    event.preventDefault();
    dialog.close();
  });
  dialog.addEventListener('close', () => {
    dialog.remove();
    link.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  cancel.focus();
}

document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[data-dialog]');
  const isPlain = !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain) return;
  event.preventDefault();
  void showDialog(link);
});

// ---- a form that is on its way is not sent a second time

document.addEventListener('submit', (event) => {
  const form = event.target;
  if (form.method !== 'post') return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = 'yes';
});

// ---- pages that keep themselves up to date

/** Puts the parts of a page that may change into this one; not where somebody has the focus, or marks a text. */
function put(page) {
  for (const fresh of page.querySelectorAll('[data-live][id]')) {
    const old = document.getElementById(fresh.id);
    if (!old || old.isEqualNode(fresh) || isInHand(old)) continue;
    old.replaceWith(document.importNode(fresh, true));
  }
}

function isInHand(element) {
  const selection = getSelection();
  const isMarked = selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
  return isMarked || element.contains(document.activeElement);
}

const TIME = new Intl.DateTimeFormat([], { timeStyle: 'medium' });

function keepUpToDate(status) {
  const words = document.createElement('span');
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'quiet';
  status.append(words, ' ', button);
  status.hidden = false;

  let isPaused = false;
  let upToDateAt = new Date();
  const say = (state) => {
    const time = TIME.format(upToDateAt);
    words.textContent = { live: `● live ${time}`, paused: `○ paused ${time}`, away: `▲ no answer since ${time}` }[
      state
    ];
    button.textContent = isPaused ? 'Resume' : 'Pause';
  };

  const refresh = async () => {
    try {
      const response = await fetch(location.href, { redirect: 'error', headers: { 'X-Llmp-Refresh': '1' } });
      if (response.status === 401) {
        location.reload(); // Which leads to the log-in.
        return;
      }
      if (!response.ok) throw new Error(String(response.status));
      const page = parsed(await response.text());
      if (isPaused) return;
      put(page);
      upToDateAt = new Date();
      say('live');
    } catch {
      if (!isPaused) say('away');
    }
  };

  button.addEventListener('click', () => {
    isPaused = !isPaused;
    say(isPaused ? 'paused' : 'live');
    if (!isPaused) void refresh();
  });
  say('live');
  setInterval(() => {
    if (!isPaused && !document.hidden && !document.querySelector('dialog[open]')) void refresh();
  }, REFRESH_EVERY_MS);
}

const status = document.querySelector('main[data-refresh] [data-live-status]');
if (status) keepUpToDate(status);
