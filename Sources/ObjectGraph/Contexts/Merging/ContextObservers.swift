import StoreInterface
import StoreModel

/// The observers of a context's view and notices, its children, and the requests that are being iterated.
struct ContextObservers {
    /// Observers that follow each change of the view, as live results do.
    private(set) var views: [any ViewObserver] = []
    private var notices: [UInt64: (ContextNotice) -> Void] = [:]
    /// Notices that some observers have not received yet, oldest first, with the tokens of these observers.
    private var unreceived: [(notice: ContextNotice, tokens: ArraySlice<UInt64>)] = []
    /// Continuations of the observers that feed a sequence. They are finished when the context is released or closed.
    private var streams: [UInt64: AsyncStream<ContextNotice>.Continuation] = [:]
    private var lastToken: UInt64 = 0
    /// Children that are moved to this context's new state after each save.
    var children: [WeakContext] = []
    /// Requests that are being iterated.
    var openSources: [WeakSource] = []

    /// Whether changes must be recorded for observers.
    var needChanges: Bool { !views.isEmpty || !notices.isEmpty }
    var hasNotices: Bool { !notices.isEmpty }

    mutating func add(_ observer: any ViewObserver) { views.append(observer) }

    mutating func remove(_ observer: any ViewObserver) { views.removeAll { $0 === observer } }

    /// Adds an observer of notices and returns its token.
    mutating func add(_ observer: @escaping (ContextNotice) -> Void) -> UInt64 {
        lastToken += 1
        notices[lastToken] = observer
        return lastToken
    }

    /// Names the sequence that an observer feeds.
    mutating func setStream(_ continuation: AsyncStream<ContextNotice>.Continuation, for token: UInt64) {
        streams[token] = continuation
    }

    /// Removes an observer of notices and returns it. The caller releases it when the observers are not in use: what the observer has
    /// captured may remove others when it is deallocated.
    mutating func remove(_ token: UInt64) -> ((ContextNotice) -> Void)? {
        streams[token] = nil
        return notices.removeValue(forKey: token)
    }

    /// Adds a notice for ``nextCall()``.
    mutating func post(_ notice: ContextNotice) { unreceived.append((notice, notices.keys.sorted()[...])) }

    /// Returns the next call of an observer, in the order in which they were added; nil if there is none.
    ///
    /// If an observer causes another notice, the observers after it receive the earlier notice first. So each observer receives all notices
    /// in their order.
    mutating func nextCall() -> (() -> Void)? {
        while !unreceived.isEmpty {
            let notice = unreceived[0].notice
            guard let token = unreceived[0].tokens.popFirst() else {
                unreceived.removeFirst()
                continue
            }
            if let observer = notices[token] { return { observer(notice) } }
        }
        return nil
    }

    /// Ends the sequences of notices.
    func finishStreams() {
        for stream in streams.values { stream.finish() }
    }

    /// Removes the requests that are being iterated and returns them for the caller to end.
    mutating func takeSources() -> [WeakSource] {
        defer { openSources = [] }
        return openSources
    }

    /// Removes all that depend on an open store, and returns the observers of the view and the requests for the caller to end.
    /// Observers of notices stay, because unsaved changes can still be rolled back.
    mutating func close() -> (views: [any ViewObserver], sources: [WeakSource]) {
        let closed = (views, openSources)
        for token in streams.keys { notices[token] = nil }
        finishStreams()
        (views, openSources, streams, children) = ([], [], [:], [])
        return closed
    }
}
