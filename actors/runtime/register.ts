/** What is known of replays: which objects a message is about, and what withdraws one. Declared by the actor that keeps the objects. */
export interface ObjectRule<Message> {
  /**
   * The object that a message is about and whether it is there afterwards; `unchanged` when the message only mentions it. Undefined for
   * messages that are about none.
   */
  objectOf(message: Message): { readonly key: string; readonly there: boolean | 'unchanged' } | undefined
  /** The message that says that an object is gone. */
  withdrawal(key: string): Message
}

/**
 * The objects that a peer has told of, over all its incarnations. Works out what a finished replay did not mention; a replay that
 * is superseded or interrupted withdraws nothing.
 */
export class ObjectRegister<Message> {
  readonly #rule: ObjectRule<Message>
  readonly #known = new Set<string>()
  #replay: { readonly number: number; readonly mentioned: Set<string> } | undefined

  constructor(rule: ObjectRule<Message>) {
    this.#rule = rule
  }

  /** A message is about to be received. */
  heard(message: Message): void {
    const object = this.#rule.objectOf(message)
    if (!object) return
    this.#replay?.mentioned.add(object.key)
    if (object.there === true) this.#known.add(object.key)
    else if (!object.there) this.#known.delete(object.key)
  }

  /** A replay began; one that was under way is superseded. */
  begin(number: number): void {
    this.#replay = { number, mentioned: new Set() }
  }

  /**
   * A replay ended. Returns what withdraws the objects that it did not mention: nothing unless it was complete. Undefined when it is not
   * the one under way.
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

  /** The link died: the replay under way will not be finished. */
  interrupted(): void {
    this.#replay = undefined
  }
}
