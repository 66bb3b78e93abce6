internal import Platform

/// A count of the forks that led to this process: a check of the process id without a system call.
enum ForkCount {
    private static let forks = Atomic(0)

    private static let watch: Void = {
        CurrentProcess.afterForkInChild { ForkCount.forks.wrappingAdd(1, ordering: .relaxed) }
    }()

    static var current: Int {
        watch
        return forks.load(ordering: .relaxed)
    }
}
