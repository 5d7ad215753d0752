// The page of a reader.

import { Connection } from "/static/connection.js";
import { downloads, fill, languageName } from "/static/download.js";
import { Board } from "/static/render.js";
import { settings } from "/static/settings.js";
import { Texts } from "/static/texts.js";

const $ = (id) => document.getElementById(id);
const STATES = { connecting: "Connecting", open: "Live", lost: "Connection lost, trying again", ended: "The speaker has finished", refused: "Ended" };
const session = decodeURIComponent(location.pathname.split("/")[2]);
const asked = new URLSearchParams(location.search).get("language");

settings($("display").querySelector("form"));
const texts = new Texts();
const board = new Board($("text"), $("spoken"), texts);
downloads($("download"), texts);
board.language = asked ?? "";

new Connection({ type: "watch", version: 1, session }, {
  onEvent(event) {
    board.changed(texts.apply(event));
  },
  onState(state, detail) {
    $("state").textContent = STATES[state];
    document.body.dataset.state = state;
    if (state === "open") languages(detail);
    if (state === "refused") {
      $("problem").textContent = detail.message;
      $("problem").hidden = false;
    }
  },
});

$("language").addEventListener("change", () => {
  board.language = $("language").value;
  board.redraw();
});

function languages({ targets }) {
  const several = targets.length > 1 ? [["", "all languages"]] : [];
  fill($("language"), [...several, ...targets.map((code) => [code, languageName(code)])]);
  if (targets.includes(board.language)) $("language").value = board.language;
  board.language = $("language").value;
  fill($("download").querySelector("select"), [...targets.map((code) => [code, languageName(code)]), ["", "what was said"]]);
  $("download").hidden = false;
  board.redraw();
}
