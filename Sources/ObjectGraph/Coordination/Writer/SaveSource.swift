/// The source of a new state of the store. The writer does not notify a context of its own saves.
enum SaveSource: Hashable, Sendable {
    /// A context, by its number.
    case context(UInt64)
    /// A batch change, of which all contexts are notified.
    case batch
    /// The writing of deferred saves to the disk, which changes no object.
    case flush
    /// Another process or connection; also a change whose source is not known.
    case externalProcess

    /// Whether contexts that do not merge saves are notified too.
    var concernsEveryContext: Bool { self == .batch || self == .flush }
}
