// Types that the console uses, for its checks; they are not shipped.
export function useEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useRef<T>(value: T): { current: T };
