/// The source of a new state of the store. The writer does not notify a context of its own saves.
enum SaveSource: Hashable, Sendable {
    /// A context, by its number.
    case context(UInt64)
    /// Several contexts and, perhaps, batch changes.
    case contexts(Set<UInt64>, areBatch: Bool)
    /// A batch change, of which all contexts are notified.
    case batch
    /// The writing of deferred saves to the disk, which changes no object.
    case flush
    /// Another process or connection; also a change whose source is not known.
    case externalProcess

    /// Whether contexts that do not merge saves are notified too.
    var concernsEveryContext: Bool {
        switch self {
        case .batch, .flush: true
        case .contexts(_, let areBatch): areBatch
        case .context, .externalProcess: false
        }
    }

    /// Whether a context, by its number, has made the change.
    func isContext(_ number: UInt64) -> Bool {
        switch self {
        case .context(let own): own == number
        case .contexts(let own, _): own.contains(number)
        case .batch, .flush, .externalProcess: false
        }
    }
}
