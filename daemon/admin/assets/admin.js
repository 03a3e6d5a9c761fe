// What makes the pages more comfortable; all of them work without it. Copy buttons, dialogs that ask, and pages that keep themselves up
// to date. Everything that is put into a page comes from a page of the same server, finished and escaped there.

const REFRESH_EVERY_MS = 2_500;
const STALE_AFTER_MISSED = 3;
// A refresh without an answer is given up then, so that the next one tries a new connection.
const REFRESH_WITHIN_MS = 10_000;
const QUESTION_WITHIN_MS = 5_000;
// Above what the server itself waits for the management API, whose answer says more.
const CHANGE_WITHIN_MS = 20_000;
const CHANGE_IS_SLOW_AFTER_MS = 4_000;
const SECOND_MS = 1_000;
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

// ---- notices of this script

/** Says `text` above the content, or in the dialog that is open. The same notice is written over, not repeated. */
function notify(text) {
  const place = document.querySelector('dialog[open] [data-dialog-content]') ?? document.getElementById('main');
  let notice = document.getElementById('script-notice');
  if (!notice || notice.parentElement !== place) {
    notice?.remove();
    notice = document.createElement('p');
    notice.id = 'script-notice';
    notice.className = 'notice bad';
    notice.setAttribute('role', 'alert');
    place.prepend(notice);
  }
  if (notice.textContent !== text) notice.textContent = text;
}

const forgetNotice = () => document.getElementById('script-notice')?.remove();

// ---- a link to a page that asks shows it on top of this one

class NoAnswer extends Error {}

/** @returns null where the page is not one to be shown in a dialog. @throws {NoAnswer} after QUESTION_WITHIN_MS. */
async function contentOf(href) {
  let response;
  let text;
  const patience = patienceOf(QUESTION_WITHIN_MS);
  try {
    response = await fetch(href, { redirect: 'error', signal: patience.signal });
    text = await response.text();
  } catch {
    if (patience.signal.aborted) throw new NoAnswer();
    return null;
  } finally {
    patience.end();
  }
  if (!response.ok) return null;
  const content = parsed(text).querySelector('[data-dialog-content]');
  return content && document.importNode(content, true);
}

function patienceOf(ms) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), ms);
  return { signal: controller.signal, end: () => clearTimeout(timer) };
}

const parsed = (html) => new DOMParser().parseFromString(html, 'text/html');

async function showDialog(link) {
  if (link.getAttribute('aria-busy') === 'true') return;
  link.setAttribute('aria-busy', 'true');
  let content;
  try {
    content = await contentOf(link.href);
  } catch {
    notify('The daemon does not answer, so this cannot be done now. Nothing was changed.');
    return;
  } finally {
    link.removeAttribute('aria-busy');
  }
  if (!content) {
    location.assign(link.href); // That page says what is wrong.
    return;
  }
  forgetNotice();
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

// ---- marks of a list

for (const button of document.querySelectorAll('[data-mark-all]')) {
  const boxes = () => [...button.form.querySelectorAll('input[type=checkbox]')];
  const say = () => {
    const marked = boxes().filter((box) => box.checked).length;
    const isAll = marked > 0 && marked === boxes().length;
    button.textContent = isAll ? 'Unmark all' : `Mark all of this page${marked > 0 ? ` (${marked} marked)` : ''}`;
    return isAll;
  };
  button.hidden = false;
  button.addEventListener('click', () => {
    const isMarked = !say();
    for (const box of boxes()) box.checked = isMarked;
    say();
  });
  button.form.addEventListener('change', say);
  document.addEventListener('llmp:refreshed', say);
  say();
}

// ---- a form that is on its way is not sent a second time, and says so when no answer comes

document.addEventListener('submit', (event) => {
  const form = event.target;
  if (form.method !== 'post') return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = 'yes';
  // The next page replaces this one, and with it these timers. Where no answer comes this page stays, and they run.
  setTimeout(() => {
    notify('The daemon has not answered yet. It is not known whether this was done.');
  }, CHANGE_IS_SLOW_AFTER_MS);
  setTimeout(() => {
    stop();
    delete form.dataset.sent;
    notify(
      `No answer within ${CHANGE_WITHIN_MS / SECOND_MS} seconds. It is not known whether this was done: ` +
        'reload the page once the daemon answers, and look before you send it again.',
    );
  }, CHANGE_WITHIN_MS);
});

// ---- pages that keep themselves up to date

/** Puts the parts of a page that may change into this one. What somebody marks as text stays; marks and the focus are kept. */
function put(page) {
  for (const fresh of page.querySelectorAll('[data-live][id]')) {
    const old = document.getElementById(fresh.id);
    if (!old || old.isEqualNode(fresh) || isInHand(old)) continue;
    const next = document.importNode(fresh, true);
    for (const box of old.querySelectorAll('input[type=checkbox]:checked')) {
      const same = next.querySelector(`input[name="${CSS.escape(box.name)}"][value="${CSS.escape(box.value)}"]`);
      if (same) same.checked = true;
    }
    const focused = old.contains(document.activeElement) ? sameIn(next, document.activeElement) : null;
    old.replaceWith(next);
    focused?.focus({ preventScroll: true });
  }
  document.dispatchEvent(new Event('llmp:refreshed'));
}

/** The element of a fresh part that stands for `focused` of the old one. */
function sameIn(fresh, focused) {
  const name = focused instanceof HTMLInputElement ? 'value' : 'href';
  const own = focused.getAttribute(name);
  const tag = focused.tagName.toLowerCase();
  return own === null ? null : fresh.querySelector(`${tag}[${name}="${CSS.escape(own)}"]`);
}

/** Whether text in it is marked, or the focus is in it and could not be given back. */
function isInHand(element) {
  const selection = getSelection();
  const isMarked = selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
  const { activeElement } = document;
  const keepsFocus = activeElement?.matches('a[href], input[type=checkbox]');
  return isMarked || (element.contains(activeElement) && !keepsFocus);
}

const STALE_NOTICE = 'The daemon does not answer at the moment. A change may not get through.';
const TIME = new Intl.DateTimeFormat([], { timeStyle: 'medium' });

function keepUpToDate(status) {
  const words = document.createElement('span');
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'quiet';
  status.append(words, ' ', button);
  status.hidden = false;

  let isPaused = false;
  let isAsking = false;
  /** Whether what is shown is old for a good reason, and the answer that renews it is awaited: after a pause, or in another tab. */
  let isCatchingUp = false;
  /** Refreshes that were due since the last answer and brought none. */
  let missed = 0;
  let upToDateAt = new Date();
  const isStale = () => missed >= STALE_AFTER_MISSED;

  const say = () => {
    const time = TIME.format(upToDateAt);
    const age = Math.round((Date.now() - upToDateAt.getTime()) / SECOND_MS);
    if (isPaused) words.textContent = `○ paused ${time}`;
    else if (isStale()) words.textContent = `▲ stale ${age}s`;
    else words.textContent = isCatchingUp ? '○ refreshing' : `● live ${time}`;
    button.textContent = isPaused ? 'Resume' : 'Pause';
    const hidesStatus = document.querySelector('dialog[open]') !== null;
    if (hidesStatus && isStale() && !document.getElementById('script-notice')) notify(STALE_NOTICE);
  };

  const refresh = async () => {
    // A request that is still waiting is asked no second time: it counts as missed.
    if (isAsking) return;
    isAsking = true;
    const patience = patienceOf(REFRESH_WITHIN_MS);
    try {
      const headers = { 'X-Llmp-Refresh': '1' };
      const response = await fetch(location.href, { redirect: 'error', headers, signal: patience.signal });
      if (response.status === 401) {
        location.reload(); // Which leads to the log-in.
        return;
      }
      if (!response.ok) return;
      const page = parsed(await response.text());
      missed = 0;
      isCatchingUp = false;
      if (isPaused) return;
      if (document.getElementById('script-notice')?.textContent === STALE_NOTICE) forgetNotice();
      // The dialog gives the focus back to a link of the page, which must still be there.
      if (!document.querySelector('dialog[open]')) {
        put(page);
        upToDateAt = new Date();
      }
      say();
    } catch {
      // The next refresh that is due counts it.
    } finally {
      patience.end();
      isAsking = false;
    }
  };

  button.addEventListener('click', () => {
    isPaused = !isPaused;
    if (isPaused) say();
    else catchUp();
  });
  say();
  const due = () => {
    missed += 1;
    void refresh();
  };
  const catchUp = () => {
    isCatchingUp = true;
    missed = 0;
    say();
    due();
  };
  setInterval(() => {
    if (!isPaused && !document.hidden) due();
  }, REFRESH_EVERY_MS);
  setInterval(() => {
    if (isStale() && !document.hidden) say();
  }, SECOND_MS);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && !isPaused) catchUp();
  });
}

const status = document.querySelector('main[data-refresh] [data-live-status]');
if (status) keepUpToDate(status);
