#if canImport(SwiftUI)
    import SwiftUI

    /// The live objects of a request, for SwiftUI views. Reads from the container that `strataContainer(_:)` sets.
    /// The value is nil outside of a container, and if the request cannot be fetched: see ``error``.
    @propertyWrapper @MainActor public struct Query<M: PersistentModel>: @MainActor DynamicProperty {
        @MainActor private final class Storage {
            var results: Results<M>?
            var error: (any Error)?
            weak var context: ManagedObjectContext?
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

        /// Fetches the objects when the view gets a container.
        public func update() {
            guard let context = container?.mainContext, storage.context !== context else { return }
            storage.context = context
            do { storage.results = try Results(request, context: context) } catch { storage.error = error }
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
