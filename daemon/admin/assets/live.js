// Live pages, with the functions of admin.js: automatic refresh, and the events of the Events page as they come.
/* global notify, clearNotice, parsed, timeoutOf, SECOND_MS */

const REFRESH_INTERVAL_MS = 2_500;
const MAX_MISSED_REFRESHES = 3;
// A refresh without a response is aborted after this time, so that the next one tries a new connection.
const REFRESH_TIMEOUT_MS = 10_000;

// ---- the status of a live page, beside its heading

const STALE_NOTICE = 'The daemon is not responding at the moment. A change may fail.';
const TIME = new Intl.DateTimeFormat([], { timeStyle: 'medium' });

/**
 * Shows how old the page is, with a button that pauses it. A stale page is grey.
 *
 * `onPause` and `onResume` are called for the button. The caller reports with `confirm` that the page is up to date, with `miss` that it was
 * not refreshed, and with `catchUp` that it is old for another reason than a missing response.
 */
function liveStatus(target, { onPause, onResume }) {
  const words = document.createElement('span');
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'quiet';
  target.append(words, ' ', button);
  target.hidden = false;

  const status = { isPaused: false, more: '' };
  /** Whether the page is old because it was paused or in a background tab, and its first refresh is pending. */
  let isCatchingUp = false;
  /** Refreshes without a response since the last successful one. */
  let missed = 0;
  let upToDateAt = new Date();
  const isStale = () => missed >= MAX_MISSED_REFRESHES;

  status.update = () => {
    const time = TIME.format(upToDateAt);
    const age = Math.round((Date.now() - upToDateAt.getTime()) / SECOND_MS);
    if (status.isPaused) words.textContent = `○ paused ${time}`;
    else if (isStale()) words.textContent = `▲ stale ${age}s`;
    else words.textContent = isCatchingUp ? '○ refreshing' : `● live ${time}`;
    button.textContent = status.isPaused ? `Resume${status.more}` : 'Pause';
    target.closest('main').toggleAttribute('data-stale', isStale() && !status.isPaused);
    const isStatusHidden = document.querySelector('dialog[open]') !== null;
    if (isStatusHidden && isStale() && !document.getElementById('script-notice')) notify(STALE_NOTICE);
  };
  /** A response came. `isShown`: the page shows it. */
  status.confirm = (isShown) => {
    missed = 0;
    isCatchingUp = false;
    if (status.isPaused) return;
    if (isShown) upToDateAt = new Date();
    if (document.getElementById('script-notice')?.textContent === STALE_NOTICE) clearNotice();
    status.update();
  };
  status.miss = () => {
    missed += 1;
  };
  status.catchUp = () => {
    isCatchingUp = true;
    missed = 0;
    status.update();
  };
  button.addEventListener('click', () => {
    status.isPaused = !status.isPaused;
    if (status.isPaused) onPause?.();
    else onResume();
    status.update();
  });
  setInterval(() => {
    if (isStale() && !document.hidden) status.update();
  }, SECOND_MS);
  status.update();
  return status;
}

/** Asks for this page. `X-Llmp-Refresh` says that the user did not, so the session does not last longer. @returns null without a response. */
async function fetchPage() {
  const timeout = timeoutOf(REFRESH_TIMEOUT_MS);
  try {
    const headers = { 'X-Llmp-Refresh': '1' };
    const response = await fetch(location.href, { redirect: 'error', headers, signal: timeout.signal });
    if (response.status === 401) location.reload(); // Redirects to the login page.
    return response.ok ? parsed(await response.text()) : null;
  } catch {
    return null;
  } finally {
    timeout.end();
  }
}

// ---- lists in which somebody works hold still

/** Whether the pointer, the focus or an open row is in the list, or its first rows were scrolled away. */
function isWorkedIn(list) {
  const { top, bottom } = list.getBoundingClientRect();
  return (
    list.matches(':hover') ||
    list.contains(document.activeElement) ||
    (list.matches('.events') && list.querySelector('details[open]') !== null) ||
    (top < 0 && bottom > 0)
  );
}

/**
 * A button that says how many rows are new. It moves nothing, because it is at the edge of the window. `n` does the same while the focus is
 * in the list.
 *
 * @param list what it precedes in the order of the keyboard. @param onShow shows the new rows. @param firstOf the first element in the rows
 * that can have the focus.
 */
function newRowsButton(list, { onShow, firstOf }) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'new-rows';
  button.title = 'Show them: n, while the focus is in the list';
  button.setAttribute('aria-keyshortcuts', 'n');
  button.hidden = true;
  list.closest('main > *').before(button);
  const show = () => {
    onShow();
    button.hidden = true;
  };
  // The focus stays where it is.
  button.addEventListener('mousedown', (event) => event.preventDefault());
  button.addEventListener('click', ({ detail }) => {
    show();
    const first = firstOf();
    if (detail === 0) first?.focus({ preventScroll: true });
    first?.scrollIntoView({ block: 'nearest' });
  });
  document.addEventListener('keydown', (event) => {
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.key === 'n' && isPlain && !button.hidden && event.target.closest('table, .events')) show();
  });
  return {
    say: (count, noun) => {
      button.hidden = count === 0;
      button.textContent = `${count.toLocaleString('en')} new ${noun}${count === 1 ? '' : 's'}, show`;
    },
    isInUse: () => !button.hidden && button.matches(':hover, :focus'),
  };
}

/** Updates the cells of the rows that stay. @returns the number of new rows, which are left out. */
function updateRows(old, fresh) {
  const rows = new Map([...old.tBodies[0].rows].map((row) => [row.dataset.key, row]));
  let added = 0;
  for (const freshRow of fresh.tBodies[0].rows) {
    const row = rows.get(freshRow.dataset.key);
    if (!row) added += 1;
    else for (const [at, cell] of [...freshRow.cells].entries()) updateCell(row.cells[at], cell);
  }
  return added;
}

function updateCell(old, fresh) {
  const isFree = old && !old.matches(':hover') && !old.contains(document.activeElement) && !isInUse(old);
  if (isFree && !old.querySelector('input') && !old.isEqualNode(fresh))
    old.replaceWith(document.importNode(fresh, true));
}

// ---- automatic refresh

/**
 * Replaces the live parts of this page by those of `page`, except a part in use. Keeps selected rows, open details and the focus.
 *
 * @param areHeld whether lists in which somebody works keep their rows. @returns the numbers of their new rows, by what these are.
 */
function replaceLiveParts(page, areHeld) {
  const added = new Map();
  for (const fresh of page.querySelectorAll('[data-live][id]')) {
    const old = document.getElementById(fresh.id);
    if (!old || old.isEqualNode(fresh) || isInUse(old)) continue;
    const isTable = old.matches('table');
    if (areHeld && (isTable || old.querySelector('table')) && isWorkedIn(old)) {
      const count = isTable ? updateRows(old, fresh) : 0;
      if (count > 0) added.set(old.dataset.noun, (added.get(old.dataset.noun) ?? 0) + count);
      continue;
    }
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
  return added;
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

function startRefreshing(target) {
  let isRefreshing = false;
  /** The last page that came. */
  let latest = null;
  const table = () => document.querySelector('main table[data-live]');
  const firstOf = () => table()?.querySelector('tbody a, tbody input');
  const newRows = table() && newRowsButton(table(), { onShow: () => replaceLiveParts(latest, false), firstOf });

  const refresh = async () => {
    status.miss(); // Until there is a response.
    // No second request while one is pending.
    if (isRefreshing) return;
    isRefreshing = true;
    const page = await fetchPage();
    isRefreshing = false;
    if (page === null) return;
    // When a dialog closes, the focus returns to a link of the page, which must still exist.
    const isShown = !status.isPaused && !document.querySelector('dialog[open]');
    if (isShown) {
      latest = page;
      const [[noun, count] = ['', 0]] = replaceLiveParts(page, true);
      newRows?.say(count, noun);
    }
    status.confirm(isShown);
  };
  const catchUp = () => {
    status.catchUp();
    void refresh();
  };
  const status = liveStatus(target, { onResume: catchUp });
  setInterval(() => {
    if (!status.isPaused && !document.hidden) void refresh();
  }, REFRESH_INTERVAL_MS);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && !status.isPaused) catchUp();
  });
}

// ---- events as they come

const MAX_EVENTS_SHOWN = 200;
// The server sends a beat as often as pages refresh. After this many without one, the stream is opened again.
const MAX_MISSED_BEATS = 6;

/**
 * Inserts new events on top of the list, unless it is paused or somebody works in it. Those that are open stay, and the oldest of the
 * others are removed.
 */
function startEvents(list, target) {
  const skippedNotice = document.querySelector('[data-skipped]');
  const emptyNotice = document.querySelector('[data-no-events]');
  let source = null;
  let isAsking = false;
  let lastEventId = '';
  let beatsMissed = 0;
  let skipped = 0;
  /** New events that are not shown yet, newest first, and how many came. */
  let held = [];
  let heldCount = 0;

  const isHeld = () => status.isPaused || isWorkedIn(list) || newRows.isInUse();
  const showHeld = () => {
    list.prepend(...held);
    held = [];
    heldCount = 0;
    const closed = [...list.children].filter((row) => !row.querySelector('details[open]'));
    for (const row of closed.slice(MAX_EVENTS_SHOWN)) row.remove();
    emptyNotice.hidden = list.children.length > 0;
    say();
  };
  const say = () => {
    status.more = status.isPaused && heldCount > 0 ? ` (${heldCount} new)` : '';
    newRows.say(status.isPaused ? 0 : heldCount, 'event');
    status.update();
  };
  const add = (html) => {
    const isNew = ({ id }) => !document.getElementById(id) && !held.some((row) => row.id === id);
    const rows = [...parsed(html).querySelectorAll('li')].filter(isNew).map((row) => document.importNode(row, true));
    held = [...rows, ...held].slice(0, MAX_EVENTS_SHOWN);
    heldCount += rows.length;
    if (isHeld()) say();
    else showHeld();
  };
  const newRows = newRowsButton(list, { onShow: showHeld, firstOf: () => list.querySelector('summary') });
  const alive = () => {
    beatsMissed = 0;
    status.confirm(true);
  };

  const open = () => {
    source?.close();
    const url = new URL(list.dataset.stream, location.href);
    if (lastEventId !== '') url.searchParams.set('last_event_id', lastEventId);
    source = new EventSource(url);
    beatsMissed = 0;
    source.addEventListener('beat', alive);
    source.addEventListener('rows', (event) => {
      ({ lastEventId } = event);
      add(event.data);
      alive();
    });
    source.addEventListener('skipped', ({ data }) => {
      skipped += Number(data);
      skippedNotice.textContent = `There are too many events to show all of them: ${skipped.toLocaleString('en')} were left out. Use the filter to see fewer.`;
      skippedNotice.hidden = false;
    });
  };
  /** After a response that is not a stream, the browser does not reconnect by itself. The session may have ended. */
  const askAndOpen = async () => {
    if (isAsking) return;
    isAsking = true;
    const page = await fetchPage();
    isAsking = false;
    if (page && !document.hidden) open();
  };
  const status = liveStatus(target, {
    onPause: say,
    onResume: showHeld,
  });
  setInterval(() => {
    if (heldCount > 0 && !isHeld()) showHeld();
  }, SECOND_MS);
  setInterval(() => {
    if (document.hidden) return;
    status.miss();
    beatsMissed += 1;
    if (source.readyState === EventSource.CLOSED) void askAndOpen();
    else if (beatsMissed >= MAX_MISSED_BEATS) open();
  }, REFRESH_INTERVAL_MS);
  // A browser has few connections for each server, which other tabs need. The stream continues where it ended.
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      source.close();
    } else {
      status.catchUp();
      open();
    }
  });
  addEventListener('pagehide', () => source.close());
  open();
}

const target = document.querySelector('[data-live-status]');
const eventList = document.querySelector('[data-stream]');
if (eventList) startEvents(eventList, target);
else if (target?.closest('main[data-refresh]')) startRefreshing(target);
