internal import Platform
import Synchronization

/// How often the process has been forked off: a process id check without a system call.
enum ForkCount {
    private static let forks = Atomic(0)

    private static let watch: Void = {
        pthread_atfork(nil, nil) { ForkCount.forks.wrappingAdd(1, ordering: .relaxed) }
    }()

    static var current: Int {
        watch
        return forks.load(ordering: .relaxed)
    }
}
