// No audio can be had; the message tells people what to do.

export class CaptureError extends Error {}
