/** The names that the DNS server of an agent answers: the relay tells it what discovery has sent. */

/** There is another table of names. The last one is told again to a server that starts anew. */
export interface NameTableChanged {
  readonly type: 'NameTableChanged'
  /** The bytes of a `NameTable`, as they came. */
  readonly table: Uint8Array
}
