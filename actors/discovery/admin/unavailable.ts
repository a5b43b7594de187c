/** Thrown when an answer cannot be had at present. What it says is for who asks, who may ask again: `UNAVAILABLE`, or HTTP status 503. */
export class Unavailable extends Error {}
