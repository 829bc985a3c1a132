// Types that the console uses, for its checks; they are not shipped.
declare const htm: { bind(h: (type: any, props: any, ...children: any[]) => unknown): (text: TemplateStringsArray, ...values: any[]) => any };
export default htm;
