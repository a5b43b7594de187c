/**
 * How the runtime maps messages to objects, so that it can withdraw objects after a replay. Declared by the actor that stores the
 * objects.
 */
export interface ObjectRule<Message> {
  /** Returns the object that a message is about. Undefined for messages about no object. */
  objectOf(message: Message): Said | undefined
  /** Returns the message that removes an object, or one part of it. */
  withdrawal(key: string, part?: string): Message
}

/** What a message says about an object. */
export interface Said {
  readonly key: string
  /** Whether the object, or its part, exists afterwards; `unchanged` when the message only mentions it. */
  readonly there: boolean | 'unchanged'
  /** The part of the object that the message is about. Undefined: it is about the object itself. */
  readonly part?: string | undefined
  /** All parts that the object has afterwards. Undefined: the message says nothing of them. */
  readonly parts?: readonly string[] | undefined
}

/**
 * The objects that a peer has announced, over all its incarnations. Determines which objects a finished replay did not mention; a
 * superseded or interrupted replay withdraws nothing.
 */
export class ObjectRegister<Message> {
  readonly #rule: ObjectRule<Message>
  /** The parts of each object; undefined for an object that was told without parts. */
  readonly #known = new Map<string, Set<string> | undefined>()
  /** The replay under way, with the parts of each object that it mentioned; `all` if it told all of them. */
  #replay: { readonly number: number; readonly mentioned: Map<string, Set<string> | 'all'> } | undefined

  constructor(rule: ObjectRule<Message>) {
    this.#rule = rule
  }

  /** Records a message that is about to be received. */
  heard(message: Message): void {
    const said = this.#rule.objectOf(message)
    if (!said) return
    this.#mention(said)
    const { key, there, part, parts } = said
    if (part !== undefined) {
      const known = this.#known.get(key)
      if (there === false) known?.delete(part)
      else if (known) known.add(part)
      // Of an object that is not known, the part means nothing to the receiver.
      else if (this.#known.has(key)) this.#known.set(key, new Set([part]))
    } else if (there === true) this.#known.set(key, parts ? new Set(parts) : this.#known.get(key))
    else if (!there) this.#known.delete(key)
  }

  #mention({ key, part, parts }: Said): void {
    const mentioned = this.#replay?.mentioned
    const before = mentioned?.get(key)
    if (!mentioned || before === 'all') return
    if (part === undefined && parts) mentioned.set(key, 'all')
    else if (part === undefined) mentioned.set(key, before ?? new Set())
    else if (before) before.add(part)
    else mentioned.set(key, new Set([part]))
  }

  /** A replay began; an unfinished one is superseded. */
  begin(number: number): void {
    this.#replay = { number, mentioned: new Map() }
  }

  /**
   * A replay ended. Returns the messages that withdraw the objects, and the parts of objects, that it did not mention; none if it was
   * incomplete. Returns undefined when this is not the replay under way.
   */
  end(number: number, complete: boolean): Message[] | undefined {
    const replay = this.#replay
    if (replay?.number !== number) return undefined
    this.#replay = undefined
    if (!complete) return []
    const withdrawals: Message[] = []
    for (const [key, parts] of this.#known) {
      const mentioned = replay.mentioned.get(key)
      if (mentioned === 'all') continue
      if (!mentioned) {
        this.#known.delete(key)
        withdrawals.push(this.#rule.withdrawal(key))
        continue
      }
      for (const part of parts ?? []) {
        if (mentioned.has(part)) continue
        parts?.delete(part)
        withdrawals.push(this.#rule.withdrawal(key, part))
      }
    }
    return withdrawals
  }

  /** The messages that withdraw every object of a peer that was removed for good. */
  withdrawals(): Message[] {
    return [...this.#known.keys()].map((key) => this.#rule.withdrawal(key))
  }

  /** The link is down: the replay under way will not be finished. */
  interrupted(): void {
    this.#replay = undefined
  }
}
