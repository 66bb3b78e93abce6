#if canImport(SwiftUI)
    import SwiftUI

    /// The live objects of a request, for SwiftUI views. Reads from the container that `strataContainer(_:)` sets.
    /// The value is nil outside of a container, and if the request cannot be fetched: see ``error``.
    ///
    /// ```swift
    /// struct FavoriteList: View {
    ///     @Query(where: #Predicate<Track> { $0.playCount > 100 }, sortBy: [.init(\.title)]) var favorites: Results<Track>?
    ///
    ///     var body: some View {
    ///         if let favorites {
    ///             ForEach(Array(favorites), id: \.id) { track in Text(track.title) }
    ///         }
    ///     }
    /// }
    /// ```
    @propertyWrapper @MainActor public struct Query<M: PersistentModel>: @MainActor DynamicProperty {
        @Environment(\.strataContainer) private var container
        @State private var storage = QueryStorage<M>()
        private let request: FetchRequest<M>

        /// Creates a query for the objects of a request, which must include pending changes.
        public init(_ request: FetchRequest<M>) { self.request = request }

        /// Creates a query for the objects that satisfy a condition, in an order.
        public init(where predicate: Predicate<M>? = nil, sortBy: [SortBy<M>] = [], limit: Int? = nil) {
            request = FetchRequest(where: predicate, sortBy: sortBy, limit: limit)
        }

        /// The objects, or nil if they cannot be fetched.
        public var wrappedValue: Results<M>? { storage.results }
        /// The error of the first fetch or of the last update.
        public var error: (any Error)? { storage.error }

        /// Fetches the objects when the view gets a container or another request, and again after an error.
        public func update() { storage.update(request, in: container?.mainContext) }
    }

    extension EnvironmentValues {
        /// The container of the views.
        @Entry public var strataContainer: PersistentContainer? = nil
    }

    extension View {
        /// Sets the container that ``Query`` reads in this view and the views inside it.
        public func strataContainer(_ container: PersistentContainer) -> some View { environment(\.strataContainer, container) }
    }
#endif

/// The results of a `Query`. SwiftUI keeps them while it creates the structure of the view again.
///
/// Compiled on every system, so that tests run it where SwiftUI does not exist.
@MainActor final class QueryStorage<M: PersistentModel> {
    private(set) var results: Results<M>?
    /// The error of the last fetch.
    private var failure: (any Error)?
    /// The context and the request of the last fetch.
    private weak var context: ManagedObjectContext?
    private var request: RequestIdentity?

    /// The error of the last fetch or of the last update.
    var error: (any Error)? { failure ?? results?.error }

    /// Fetches the objects if the context or the request is another one, and again after an error. Without a context, changes nothing.
    func update(_ request: FetchRequest<M>, in context: ManagedObjectContext?) {
        guard let context else { return }
        let identity = RequestIdentity(request, in: context)
        if self.context === context, self.request == identity, failure == nil { return }
        do {
            (results, failure) = (try Results(request, context: context), nil)
        } catch {
            (results, failure) = (nil, error)
        }
        (self.context, self.request) = (context, identity)
    }
}
