import StoreInterface
import StoreModel

/// The parts by which requests are told apart. The text alone leaves out much of long lists, of long strings and of data.
struct RequestIdentity: Equatable {
    private var text: String
    /// The query without the parts that are computed in Swift, and the texts of these; nil for a request that cannot be fetched.
    private var query: StoreQuery?
    private var computed: [String] = []

    /// Does not use the context, which may be suspended. Provisional ids are told apart by the text, so that an object stays shown when it
    /// is saved.
    init<M: PersistentModel>(_ request: FetchRequest<M>, in context: ManagedObjectContext) {
        text = request.description
        query = try? request.storeQuery(in: RequestScope(model: context.storedModel, store: context.storeIdentity))
        guard let predicate = query?.predicate else { return }
        computed = predicate.evaluatedParts
        query?.predicate = predicate.withoutEvaluated
    }
}
