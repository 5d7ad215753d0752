// The level meter, and a microphone that gives nothing at all.

const FLOOR_DB = 60; // the lowest level that is shown
const NOTHING = 1e-4; // -80 dB: below what any open microphone picks up
const PATIENCE_S = 5;

export class Level {
  // meter: an element from 0 to 1. onSilence(silent): true if nothing has come since the beginning, false once something does.
  constructor(meter, onSilence) {
    this.meter = meter;
    this.onSilence = onSilence;
    this.begin(1);
  }

  // rate: of the audio that follows.
  begin(rate) {
    this.left = PATIENCE_S * rate;
    this.silent = false;
    this.show(0);
  }

  heard(samples, peak) {
    this.show(peak);
    const before = this.left;
    if (peak >= NOTHING) this.left = Infinity;
    else this.left -= samples.length;
    if (this.silent && peak >= NOTHING) this.onSilence((this.silent = false));
    if (before > 0 && this.left <= 0) this.onSilence((this.silent = true));
  }

  show(peak) {
    this.meter.value = peak > 0 ? Math.max(0, 1 + (20 * Math.log10(peak)) / FLOOR_DB) : 0;
  }
}
