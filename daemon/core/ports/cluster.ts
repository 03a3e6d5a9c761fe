/** Storage and messages that instances with a shared database use to stay in sync. */
import type { CommittedChange } from './records.js';

/** The instances that share the limits of tokens and projects. */
export interface Peers {
  /** Number of live ones. A daemon with workers is one. */
  live: number;
  /** Whether this one has the lowest ID. */
  isFirst: boolean;
  /** Whether this one is live. */
  isLive: boolean;
  /** Number of other ones that count apart from Redis, or did so until they ended, a minute ago at most. */
  apart: number;
  /** Whether one of these has the lowest ID. */
  isFirstApart: boolean;
}

/** Result of a poll. */
export interface ClusterState {
  /** Number of the last change record. */
  seq: number;
  /** IDs of tokens and projects whose units or budgets this instance has leased and another instance needs. */
  wanted: readonly string[];
  peers: Peers;
}

/** The part of the shared database that `ClusterSync` uses. */
export interface ClusterStore {
  poll(instanceId: string, nowMs: number): Promise<ClusterState>;
  /** Changes with numbers above `seq`, in order. */
  changesAfter(seq: number, limit: number): Promise<CommittedChange[]>;
  /** Expires instances without a recent heartbeat: the units they held count as used. @returns how many expired. */
  expireDead(instanceId: string, nowMs: number): Promise<number>;
  /** Deletes changes that every instance has long applied. */
  deleteChangesBefore(timeMs: number): Promise<void>;
  /** Tells the others whether this instance counts the limits of tokens and projects apart from Redis. */
  markApart(instanceId: string, isApart: boolean): Promise<void>;
}

/** A message from one instance to the others, which may be lost: nothing depends on its delivery. */
export type Notification =
  | { kind: 'changed'; change: CommittedChange }
  /** Asks instances that have leased units or a budget of this token or project to return them. */
  | { kind: 'wanted'; id: string }
  /** The subscription was (re-)established: notifications may have been missed. */
  | { kind: 'arrived' };

export interface Notifications {
  /** Does not wait and does not throw. */
  send(notification: Notification): void;
  onNotification(listener: (notification: Notification) => void): void;
}
