// The pairs of languages that this browser's speaker used, the last one first.

const KEY = "speech-translation-pairs";
const MOST = 8;

export function recentPairs() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? [];
  } catch {
    return [];
  }
}

export function usePair(source, target) {
  const others = recentPairs().filter(([one, other]) => one !== source || other !== target);
  try {
    localStorage.setItem(KEY, JSON.stringify([[source, target], ...others].slice(0, MOST)));
  } catch {
    // private windows may have no storage
  }
}
