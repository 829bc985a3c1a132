// Types that the console uses, for its checks; they are not shipped.
export interface Signal<T> { value: T; peek(): T }
export function signal<T>(value: T): Signal<T>;
export function computed<T>(compute: () => T): { readonly value: T };
export function effect(run: () => void): () => void;
export function useSignal<T>(value: T): Signal<T>;
