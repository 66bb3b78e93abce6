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
        @MainActor private final class Storage {
            var results: Results<M>?
            var error: (any Error)?
            weak var context: ManagedObjectContext?
            /// The request of the results, as text.
            var request = ""
        }

        @Environment(\.strataContainer) private var container
        @State private var storage = Storage()
        private let request: FetchRequest<M>

        /// Creates a query for the objects of a request.
        public init(_ request: FetchRequest<M>) { self.request = request }

        /// Creates a query for the objects that satisfy a condition, in an order.
        public init(where predicate: Predicate<M>? = nil, sortBy: [SortBy<M>] = [], limit: Int? = nil) {
            request = FetchRequest(where: predicate, sortBy: sortBy, limit: limit)
        }

        /// The objects, or nil if they cannot be fetched.
        public var wrappedValue: Results<M>? { storage.results }
        /// The error of the first fetch or of the last update.
        public var error: (any Error)? { storage.error ?? storage.results?.error }

        /// Fetches the objects when the view gets a container or another request, and again after an error.
        public func update() {
            guard let context = container?.mainContext else { return }
            let request = request.description
            if storage.context === context, storage.request == request { return }
            do {
                storage.results = try Results(self.request, context: context)
                (storage.context, storage.request, storage.error) = (context, request, nil)
            } catch {
                (storage.results, storage.error) = (nil, error)
            }
        }
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
