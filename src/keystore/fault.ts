/** Thrown for a key store that cannot be read. The message names the part and the reason, and quotes neither password nor key. */
export class KeyStoreFault extends Error {}

/** Thrown for a password that does not fit. A file that was changed cannot be told from that. */
export class WrongPassword extends KeyStoreFault {
  constructor() {
    super('its password is another one, or the file is damaged')
  }
}
