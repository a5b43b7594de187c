/**
 * How the runtime maps messages to objects, so that it can withdraw objects after a replay. Declared by the actor that stores the
 * objects.
 */
export interface ObjectRule<Message> {
  /**
   * Returns the object that a message is about and whether it exists afterwards; `unchanged` when the message only mentions it. Undefined
   * for messages about no object.
   */
  objectOf(message: Message): { readonly key: string; readonly there: boolean | 'unchanged' } | undefined
  /** Returns the message that removes an object. */
  withdrawal(key: string): Message
}

/**
 * The objects that a peer has announced, over all its incarnations. Determines which objects a finished replay did not mention; a
 * superseded or interrupted replay withdraws nothing.
 */
export class ObjectRegister<Message> {
  readonly #rule: ObjectRule<Message>
  readonly #known = new Set<string>()
  #replay: { readonly number: number; readonly mentioned: Set<string> } | undefined

  constructor(rule: ObjectRule<Message>) {
    this.#rule = rule
  }

  /** Records a message that is about to be received. */
  heard(message: Message): void {
    const object = this.#rule.objectOf(message)
    if (!object) return
    this.#replay?.mentioned.add(object.key)
    if (object.there === true) this.#known.add(object.key)
    else if (!object.there) this.#known.delete(object.key)
  }

  /** A replay began; an unfinished one is superseded. */
  begin(number: number): void {
    this.#replay = { number, mentioned: new Set() }
  }

  /**
   * A replay ended. Returns the messages that withdraw the objects that it did not mention; none if it was incomplete. Returns undefined
   * when this is not the replay under way.
   */
  end(number: number, complete: boolean): Message[] | undefined {
    const replay = this.#replay
    if (replay?.number !== number) return undefined
    this.#replay = undefined
    if (!complete) return []
    const gone = [...this.#known].filter((key) => !replay.mentioned.has(key))
    for (const key of gone) this.#known.delete(key)
    return gone.map((key) => this.#rule.withdrawal(key))
  }

  /** The link is down: the replay under way will not be finished. */
  interrupted(): void {
    this.#replay = undefined
  }
}
