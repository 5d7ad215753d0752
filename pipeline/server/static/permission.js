// What to do when the browser does not let the page use the microphone.

import { t } from "./ui.js";

const SYSTEM = t("The system does not let this browser use the microphone. Allow it in the system's privacy settings, then press Start again.");
const BLOCKED = {
  firefox: t("The microphone is blocked. Click the crossed-out microphone beside the page's address, remove the block, and press Start again."),
  safari: t("The microphone is blocked. Choose Safari > Settings > Websites > Microphone, allow this page, and press Start again."),
  ios: t("The microphone is blocked. Open the page's menu beside its address, choose Website Settings > Microphone > Allow, and press Start again. In browsers other than Safari: Settings > Apps, choose the browser, and allow the microphone."),
  chromium: t("The microphone is blocked. Allow it with the icon beside the page's address, then press Start again. If it is allowed there, look into the system's privacy settings."),
};

// error: of getUserMedia. agent: navigator.userAgent.
export function blocked({ message }, agent) {
  if (/dismissed/i.test(message)) return t("The question about the microphone was closed. Press Start again and choose Allow.");
  if (/system/i.test(message)) return SYSTEM; // Chromium says so
  return BLOCKED[browserOf(agent)];
}

// Which of the browsers that differ here: "chromium" stands for all others, too.
export function browserOf(agent) {
  if (/iPhone|iPad/.test(agent)) return "ios"; // all browsers there are Safari inside
  if (/Firefox\//.test(agent)) return "firefox";
  return /Safari\//.test(agent) && !/Chrom(e|ium)\//.test(agent) ? "safari" : "chromium";
}
