// Terms that the server proposes, from its documents or one of the speaker's.

import { BASE } from "./base.js";

// file: null for the server's documents. Returns [{term, count}].
export async function propose(file, language, token) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const body = file ? new FormData() : undefined;
  body?.append("file", file);
  body?.append("language", language);
  const answer = await fetch(new URL("v1/terms", BASE), { method: file ? "POST" : "GET", headers, body });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error.message);
  return found.terms;
}
