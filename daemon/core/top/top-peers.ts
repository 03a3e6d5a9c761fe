/**
 * Asks the other instances for their parts of a top report, through notifications. An instance that does not answer in time is
 * missing from the report, as are all others without Redis.
 */
import { withTimeout } from '../timing.js';
import type { Clock, ClusterStore, Notification, Notifications, RecentTopQuery, TopPart } from '../ports.js';
import { COUNTS } from './counts.js';
import type { RecentTop } from './recent-top.js';
import { MAX_PEER_ROWS, type TopPeers } from './top-report.js';

const ANSWER_WITHIN_MS = 1_000;

export interface NotifiedPeersOptions {
  store: Pick<ClusterStore, 'countOthers'>;
  /** Null if the instances share only the database. */
  notifications: Notifications | null;
  recent: RecentTop;
  clock: Pick<Clock, 'now' | 'after'>;
  instanceId: string;
}

interface Question {
  parts: TopPart[];
  expected: number;
  answered: () => void;
}

export class NotifiedPeers implements TopPeers {
  readonly #options: NotifiedPeersOptions;
  /** By number. There are as many as reports are built at the same time. */
  readonly #questions = new Map<number, Question>();
  #lastNumber = 0;

  constructor(options: NotifiedPeersOptions) {
    this.#options = options;
    options.notifications?.onNotification((notification) => {
      this.#receive(notification);
    });
  }

  count(): Promise<number> {
    const { store, instanceId, clock } = this.#options;
    return store.countOthers(instanceId, clock.now());
  }

  async parts(query: RecentTopQuery, nowMs: number, expected: number): Promise<TopPart[]> {
    const { notifications, clock, instanceId } = this.#options;
    if (!notifications) return [];
    const number = ++this.#lastNumber;
    const parts: TopPart[] = [];
    const all = new Promise<void>((answered) => this.#questions.set(number, { parts, expected, answered }));
    notifications.send({ kind: 'top_wanted', number, asker: instanceId, query, nowMs });
    await withTimeout(clock, ANSWER_WITHIN_MS, all, () => undefined);
    this.#questions.delete(number);
    return parts;
  }

  #receive(notification: Notification): void {
    const { notifications, recent } = this.#options;
    if (notification.kind === 'top_wanted') {
      const { number, asker, query, nowMs } = notification;
      void recent.part({ ...query, limit: MAX_PEER_ROWS }, nowMs).then((part) => {
        notifications?.send({ kind: 'top_part', number, part }, asker);
      });
    }
    if (notification.kind === 'top_part') {
      const question = this.#questions.get(notification.number);
      // Another release may count something else. Then that instance is missing.
      if (!question || notification.part.total.counts.length !== COUNTS.length) return;
      question.parts.push(notification.part);
      if (question.parts.length === question.expected) question.answered();
    }
  }
}
