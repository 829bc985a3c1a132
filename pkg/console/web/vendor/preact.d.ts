// Types that the console uses, for its checks; they are not shipped.
export function h(type: any, props: any, ...children: any[]): unknown;
export function render(tree: unknown, into: Element): void;
