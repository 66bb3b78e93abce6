import StoreInterface
import StoreModel

/// The request of a root context to the writer: its sealed layers and the state below them.
struct SaveRequest: Sendable {
    /// The layers, oldest first, all sealed.
    var layers: [Layer]
    /// The state that the context read.
    var base: StoreState
    /// The checks besides those of the versions of the changed objects.
    var checks = ConflictChecks()
    var policy: MergePolicy
    var durability: Durability
    var metadata: SaveMetadata
    /// For each entity, the columns of deleted objects whose values the history keeps.
    var preserved: [ColumnSet]
    /// The relationships of the model with which the save was made.
    var rules: RelationshipRules
    /// The rules of properties in that model; nil if it has none.
    var validation: ValidationRules?
    /// Whether updated objects may be deleted in ``base`` already (S106).
    var mayUpdateDeleted = false
    /// The columns that the context changed of updated objects that are deleted in ``base``, as far as it has completed their rows (S106).
    var changedOfDeleted: [ObjectAddress: ColumnSet] = [:]
    /// The inserted objects that another context may have inserted too, because both have undone a deletion.
    var restored: Set<ObjectAddress> = []
    /// The updated objects about whose conflicts the policy has decided when the save was checked first, with the columns that it
    /// overwrites although the save has not changed them.
    var settled: [ObjectAddress: ColumnSet] = [:]
    /// Whether references to objects that others have deleted become nil, and changes of their one-to-one relationships are dropped.
    /// Otherwise such references fail the save (S050), and the policy decides about the changes (S106).
    ///
    /// Not part of ``SaveTerms``: when a deferred save is checked again, a missing object is one whose insertion was lost, which must
    /// be reported.
    var clearsMissingReferences = false
    /// Whether the save is only previewed. Then its check records every conflict.
    var isPreview = false
    /// Whether a context on the main actor reads the state after the save at once: see ``ContextAddress/readsNextState``.
    var readsNextState = false
    /// Whether the context merges the saves of other contexts by itself.
    var mergesByItself = false
    /// The report of the save; nil if nothing is installed.
    var trace: SaveTrace?

    /// For a batch, a closure that creates the layer from the state that the batch follows. It is called again if a transaction is
    /// repeated.
    var make: (@Sendable (StoreState) throws -> Layer)?

    /// Returns the request to check against a state, after creating the layer of a batch.
    func prepared(for state: StoreState) throws -> SaveRequest {
        guard let make else { return self }
        var prepared = self
        prepared.layers = [try make(state)]
        prepared.base = state
        return prepared
    }
}

/// The policy and the rules of one save. It is checked by them when it is accepted, and again if an earlier deferred save cannot be
/// written.
struct SaveTerms: Sendable {
    var policy: MergePolicy = .error
    /// For each entity, the columns of deleted objects whose values the history keeps.
    var preserved: [ColumnSet] = []
    /// The relationships of the model with which the save was made.
    var rules: RelationshipRules
    /// The rules of properties in that model; nil if it has none.
    var validation: ValidationRules?
    /// The checks besides those of the versions of the changed objects.
    var checks = ConflictChecks()
    /// The inserted objects that another context may have inserted too.
    var restored: Set<ObjectAddress> = []
    /// The changes that the check has added to the save. Another check decides about them anew.
    var added = AddedChanges()
}

extension SaveRequest {
    var terms: SaveTerms {
        // The policy has settled what others had saved before. Asked again, it would settle the values that it has given.
        var checks = checks
        checks.unmerged = [:]
        checks.outdated = [:]
        return SaveTerms(
            policy: policy, preserved: preserved, rules: rules, validation: validation, checks: checks, restored: restored)
    }

    /// Creates the request that checks an accepted save again.
    ///
    /// - Parameters:
    ///   - base: The state that preceded the save when it was accepted.
    ///   - state: The state that it follows now.
    init(checkingAgain save: PendingSave, base: StoreState, over state: StoreState) throws {
        let own = try save.terms.added.removed(from: save.layer, over: state.view)
        self.init(
            layers: [own.layer], base: base, checks: save.terms.checks, policy: save.terms.policy, durability: .durable,
            metadata: save.changes.metadata, preserved: save.terms.preserved, rules: save.terms.rules,
            validation: save.terms.validation, restored: save.terms.restored, settled: own.existing)
    }
}

/// The result of a save.
struct SaveOutcome: Sendable {
    /// A state that contains the save.
    var state: StoreState
    var changes: ChangeSet
}
