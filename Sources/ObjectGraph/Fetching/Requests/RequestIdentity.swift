import StoreInterface
import StoreModel

/// The content by which a query recognizes its request. The text of a request does not suffice, because it shortens lists, strings and
/// data.
struct RequestIdentity: Equatable {
    private var text: String
    /// The query without the parts that are computed in Swift; nil for a request that cannot be fetched.
    private var query: StoreQuery?
    /// The parts that are computed in Swift.
    private var computed: [Computed] = []

    private struct Computed: Equatable {
        var text: String
        var constants: [CapturedValue]
    }

    /// Creates the identity of a request. Reads nothing in the context, because the store may be suspended. A provisional id counts by its
    /// text, so that a query goes on showing the object after its save.
    init<M: PersistentModel>(_ request: FetchRequest<M>, in context: ManagedObjectContext) {
        text = request.description
        query = try? request.storeQuery(in: RequestScope(model: context.storedModel, store: context.storeIdentity))
        guard let predicate = query?.predicate else { return }
        computed = predicate.evaluatedParts.map { Computed(text: $0.description, constants: $0.constants) }
        query?.predicate = predicate.withEvaluatedPartsTrue
    }
}
