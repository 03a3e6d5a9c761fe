// Optional enhancements of the pages, which all work without scripts: copy buttons, confirmation dialogs and automatic refresh. All
// content that is inserted into a page comes from pages of the same server, which renders and escapes it.

const REFRESH_INTERVAL_MS = 2_500;
const MAX_MISSED_REFRESHES = 3;
// A refresh without a response is aborted after this time, so that the next one tries a new connection.
const REFRESH_TIMEOUT_MS = 10_000;
const DIALOG_TIMEOUT_MS = 5_000;
// Longer than the server's own timeout for the management API, whose error message says more.
const CHANGE_TIMEOUT_MS = 20_000;
const SLOW_CHANGE_MS = 4_000;
const SECOND_MS = 1_000;
const COPIED_NOTICE_MS = 2_000;

// ---- reload pages from the back-forward cache: they may show an ended session or a secret

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
    button.textContent = 'Cannot copy: copy the selected text yourself';
  }
  setTimeout(() => {
    button.textContent = before;
  }, COPIED_NOTICE_MS);
}

for (const button of document.querySelectorAll('[data-copy]')) {
  button.hidden = false;
  button.addEventListener('click', () => void copy(button));
}

// ---- notices of this script

/** Shows `text` above the content, or in the open dialog. A new notice replaces the previous one. */
function notify(text) {
  const target = document.querySelector('dialog[open] [data-dialog-content]') ?? document.getElementById('main');
  let notice = document.getElementById('script-notice');
  if (!notice || notice.parentElement !== target) {
    notice?.remove();
    notice = document.createElement('p');
    notice.id = 'script-notice';
    notice.className = 'notice bad';
    notice.setAttribute('role', 'alert');
    target.prepend(notice);
  }
  if (notice.textContent !== text) notice.textContent = text;
}

const clearNotice = () => document.getElementById('script-notice')?.remove();

// ---- links to confirmation pages open them as dialogs

class NoResponse extends Error {}

/** @returns null if the page cannot be shown in a dialog. @throws {NoResponse} after DIALOG_TIMEOUT_MS. */
async function dialogContentOf(href) {
  let response;
  let text;
  const timeout = timeoutOf(DIALOG_TIMEOUT_MS);
  try {
    response = await fetch(href, { redirect: 'error', signal: timeout.signal });
    text = await response.text();
  } catch {
    if (timeout.signal.aborted) throw new NoResponse();
    return null;
  } finally {
    timeout.end();
  }
  if (!response.ok) return null;
  const content = parsed(text).querySelector('[data-dialog-content]');
  return content && document.importNode(content, true);
}

function timeoutOf(ms) {
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
    content = await dialogContentOf(link.href);
  } catch {
    notify('The daemon is not responding, so this cannot be done now. Nothing was changed.');
    return;
  } finally {
    link.removeAttribute('aria-busy');
  }
  if (!content) {
    location.assign(link.href); // That page shows the error.
    return;
  }
  clearNotice();
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

// ---- selection of rows in a list

for (const button of document.querySelectorAll('[data-mark-all]')) {
  const boxes = () => [...button.form.querySelectorAll('input[type=checkbox]')];
  const update = () => {
    const selected = boxes().filter((box) => box.checked).length;
    const isAll = selected > 0 && selected === boxes().length;
    button.textContent = isAll
      ? 'Clear selection'
      : `Select all on this page${selected > 0 ? ` (${selected} selected)` : ''}`;
    return isAll;
  };
  button.hidden = false;
  button.addEventListener('click', () => {
    const isSelected = !update();
    for (const box of boxes()) box.checked = isSelected;
    update();
  });
  button.form.addEventListener('change', update);
  document.addEventListener('llmp:refreshed', update);
  update();
}

// ---- a submitted form is not sent a second time, and a missing response is reported

document.addEventListener('submit', (event) => {
  const form = event.target;
  if (form.method !== 'post') return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = 'yes';
  // The next page replaces this one and its timers. Without a response this page stays, and the timers fire.
  setTimeout(() => {
    notify('The daemon has not responded yet. It is unknown whether the change was made.');
  }, SLOW_CHANGE_MS);
  setTimeout(() => {
    stop();
    delete form.dataset.sent;
    notify(
      `No response within ${CHANGE_TIMEOUT_MS / SECOND_MS} seconds. It is unknown whether the change was made: ` +
        'reload the page when the daemon responds, and check before you try again.',
    );
  }, CHANGE_TIMEOUT_MS);
});

// ---- automatic refresh

/** Replaces the live parts of this page by those of `page`, except a part in use. Keeps selected rows, open details and the focus. */
function replaceLiveParts(page) {
  for (const fresh of page.querySelectorAll('[data-live][id]')) {
    const old = document.getElementById(fresh.id);
    if (!old || old.isEqualNode(fresh) || isInUse(old)) continue;
    const next = document.importNode(fresh, true);
    for (const box of old.querySelectorAll('input[type=checkbox]:checked')) {
      const same = next.querySelector(`input[name="${CSS.escape(box.name)}"][value="${CSS.escape(box.value)}"]`);
      if (same) same.checked = true;
    }
    for (const open of old.querySelectorAll('details[id][open]')) {
      const same = next.querySelector(`#${CSS.escape(open.id)}`);
      if (same) same.open = true;
    }
    const focused = old.contains(document.activeElement) ? counterpartIn(next, document.activeElement) : null;
    old.replaceWith(next);
    focused?.focus({ preventScroll: true });
  }
  document.dispatchEvent(new Event('llmp:refreshed'));
}

/** The element of the new part that corresponds to `focused` in the old part. */
function counterpartIn(fresh, focused) {
  if (focused.matches('summary')) return fresh.querySelector(`#${CSS.escape(focused.parentElement.id)} > summary`);
  const name = focused instanceof HTMLInputElement ? 'value' : 'href';
  const own = focused.getAttribute(name);
  const tag = focused.tagName.toLowerCase();
  return own === null ? null : fresh.querySelector(`${tag}[${name}="${CSS.escape(own)}"]`);
}

/** Whether text in the element is selected, or it has the focus and that could not be restored. */
function isInUse(element) {
  const selection = getSelection();
  const isSelected = selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
  const { activeElement } = document;
  const canRestoreFocus = activeElement?.matches('a[href], input[type=checkbox], details[id] > summary');
  return isSelected || (element.contains(activeElement) && !canRestoreFocus);
}

const STALE_NOTICE = 'The daemon is not responding at the moment. A change may fail.';
const TIME = new Intl.DateTimeFormat([], { timeStyle: 'medium' });

function startRefreshing(status) {
  const words = document.createElement('span');
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'quiet';
  status.append(words, ' ', button);
  status.hidden = false;

  let isPaused = false;
  let isRefreshing = false;
  /** Whether the page is old because it was paused or in a background tab, and its first refresh is pending. */
  let isCatchingUp = false;
  /** Refreshes without a response since the last successful one. */
  let missed = 0;
  let upToDateAt = new Date();
  const isStale = () => missed >= MAX_MISSED_REFRESHES;

  const updateStatus = () => {
    const time = TIME.format(upToDateAt);
    const age = Math.round((Date.now() - upToDateAt.getTime()) / SECOND_MS);
    if (isPaused) words.textContent = `○ paused ${time}`;
    else if (isStale()) words.textContent = `▲ stale ${age}s`;
    else words.textContent = isCatchingUp ? '○ refreshing' : `● live ${time}`;
    button.textContent = isPaused ? 'Resume' : 'Pause';
    // The style makes the content of a stale page grey.
    status.closest('main').toggleAttribute('data-stale', isStale() && !isPaused);
    const isStatusHidden = document.querySelector('dialog[open]') !== null;
    if (isStatusHidden && isStale() && !document.getElementById('script-notice')) notify(STALE_NOTICE);
  };

  const refresh = async () => {
    // No second request while one is pending: it counts as missed.
    if (isRefreshing) return;
    isRefreshing = true;
    const timeout = timeoutOf(REFRESH_TIMEOUT_MS);
    try {
      const headers = { 'X-Llmp-Refresh': '1' };
      const response = await fetch(location.href, { redirect: 'error', headers, signal: timeout.signal });
      if (response.status === 401) {
        location.reload(); // Redirects to the login page.
        return;
      }
      if (!response.ok) return;
      const page = parsed(await response.text());
      missed = 0;
      isCatchingUp = false;
      if (isPaused) return;
      if (document.getElementById('script-notice')?.textContent === STALE_NOTICE) clearNotice();
      // When the dialog closes, the focus returns to a link of the page, which must still exist.
      if (!document.querySelector('dialog[open]')) {
        replaceLiveParts(page);
        upToDateAt = new Date();
      }
      updateStatus();
    } catch {
      // The next refresh counts it as missed.
    } finally {
      timeout.end();
      isRefreshing = false;
    }
  };

  button.addEventListener('click', () => {
    isPaused = !isPaused;
    if (isPaused) updateStatus();
    else catchUp();
  });
  updateStatus();
  const refreshNow = () => {
    missed += 1;
    void refresh();
  };
  const catchUp = () => {
    isCatchingUp = true;
    missed = 0;
    updateStatus();
    refreshNow();
  };
  setInterval(() => {
    if (!isPaused && !document.hidden) refreshNow();
  }, REFRESH_INTERVAL_MS);
  setInterval(() => {
    if (isStale() && !document.hidden) updateStatus();
  }, SECOND_MS);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && !isPaused) catchUp();
  });
}

const status = document.querySelector('main[data-refresh] [data-live-status]');
if (status) startRefreshing(status);
