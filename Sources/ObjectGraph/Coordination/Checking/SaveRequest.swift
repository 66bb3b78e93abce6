import StoreInterface

/// What a root context hands to the writer: its sealed layers and what they lie on.
struct SaveRequest: Sendable {
    /// Oldest first, all sealed.
    var layers: [Layer]
    /// The state that the context read.
    var base: StoreState
    /// Objects that the context did not change but wants checked all the same.
    var watched: [ObjectID]
    var policy: MergePolicy
    var durability: Durability
    var origin: SaveOrigin
    /// By entity: the columns whose values the history keeps of deleted objects.
    var preserved: [ColumnSet]
    /// The relationships of the model that the save was made with.
    var rules: RelationshipRules
    /// Whether objects may be among the updated ones that are gone in ``base`` already (S106).
    var mayHaveOrphans = false
    /// Whether the save is only tried; then its check notes every conflict.
    var isPreview = false

    /// Of a batch: makes the layer when its turn has come, from the state that it follows. Called again when a transaction is repeated.
    var make: (@Sendable (StoreState) throws -> Layer)?

    /// The request as it is to be checked against a state.
    func prepared(for state: StoreState) throws -> SaveRequest {
        guard let make else { return self }
        var prepared = self
        prepared.layers = [try make(state)]
        prepared.base = state
        return prepared
    }
}

/// What came of a save.
struct SaveOutcome: Sendable {
    /// A state that holds the save.
    var state: StoreState
    var changes: ChangeSet
}
