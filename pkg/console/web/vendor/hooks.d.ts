// What the console uses, for its checks; it is not shipped.
export function useEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useRef<T>(value: T): { current: T };
