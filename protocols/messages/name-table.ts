/** The names that the DNS server of an agent resolves, which the relay receives from discovery. */

/** The table of names was replaced. A DNS server that is restarted is sent the last table again. */
export interface NameTableChanged {
  readonly type: 'NameTableChanged'
  /** An encoded `NameTable`, as received. */
  readonly table: Uint8Array
}
