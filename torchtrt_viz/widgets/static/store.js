// @ts-check
// What outlives a view: the state of a widget's model, or that of an open page.

/** @import { Model, Store } from "./types.js" */

const TOGETHER = 60; // ms

/**
 * The state of a model; `close` forgets its listeners.
 * @template S
 * @param {Model} model
 */
export function modelStore(model) {
  /** @type {[string, () => void][]} */
  const listeners = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let saving;
  const save = () => {
    saving = undefined;
    model.save_changes();
  };
  /** @type {Store<S>} */
  const store = {
    get: (key) => model.get(String(key)),
    // What changes together travels together: each message costs the notebook several milliseconds.
    set: (key, value) => {
      model.set(String(key), value);
      saving ??= setTimeout(save, TOGETHER);
    },
    on: (key, callback) => {
      listeners.push([`change:${String(key)}`, callback]);
      model.on(`change:${String(key)}`, callback);
    },
  };
  const close = () => {
    if (saving !== undefined) {
      clearTimeout(saving);
      save();
    }
    for (const [event, callback] of listeners) model.off(event, callback);
  };
  return { store, close };
}

/**
 * What a page remembers while it is open; `tell` changes it from outside.
 * @template S
 * @param {Partial<S>} values
 */
export function memoryStore(values) {
  /** @type {Map<keyof S, (() => void)[]>} */
  const listeners = new Map();
  /** @type {Store<S>} */
  const store = {
    get: (key) => values[key],
    set: (key, value) => {
      values[key] = value;
    },
    on: (key, callback) => {
      listeners.set(key, [...(listeners.get(key) ?? []), callback]);
    },
  };
  return {
    ...store,
    /**
     * @template {keyof S} K
     * @param {K} key
     * @param {S[K]} value
     */
    tell(key, value) {
      values[key] = value;
      for (const listener of listeners.get(key) ?? []) listener();
    },
  };
}
