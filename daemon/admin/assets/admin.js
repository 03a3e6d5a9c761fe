// Optional enhancements of the pages, which all work without scripts: copy buttons, confirmation dialogs and the selection of rows. All
// content that is inserted into a page comes from pages of the same server, which renders and escapes it. live.js, which follows, uses
// the functions of this script.

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
  const boxes = () => [...button.form.querySelectorAll('input[name=id]')];
  const update = () => {
    // The tokens of all pages: then it does not matter which are selected here.
    const isEverything = button.form.elements.all.checked;
    for (const box of boxes()) box.disabled = isEverything;
    button.disabled = isEverything;
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

// ---- a secret in a field of a search stays out of the URL, which is stored in the history and in logs

const SECRETS = new RegExp(document.body.dataset.secrets, 'i');
// A query box takes the secret of a token: its form is sent with POST, and the server finds the token.
const isOfToken = ({ name, value }) => name === 'q' && /(?:^|\s)sk-wt-[0-9A-Za-z]{20,}(?:\s|$)/.test(value);

document.addEventListener('submit', (event) => {
  const form = event.target;
  const hasBox = 'box' in form.dataset;
  if (form.method !== 'get' && !hasBox) return;
  const fields = [...form.elements].filter((field) => SECRETS.test(field.value) && !(hasBox && isOfToken(field)));
  if (fields.length === 0) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  for (const field of fields) field.value = '';
  fields[0].focus();
  notify(
    'This is a secret. It was not sent, and the field was cleared. The query box of the tokens finds the token of one.',
  );
});

// ---- a submitted form is not sent a second time, and a missing response is reported

document.addEventListener('submit', (event) => {
  const form = event.target;
  if (form.method !== 'post' || 'box' in form.dataset) return;
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
